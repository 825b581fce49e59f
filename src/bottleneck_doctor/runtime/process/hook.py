"""Hooks that are attached to the user's modules. A copy of a module gets a hook that does nothing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Callable, Tuple


class Hook:
    """A hook on a module of the user's. A copy of the module, as for averaged weights or to keep the best model, gets a
    hook that does nothing, because nobody would remove it. So does a pickled module, which then needs no code of
    doctor's."""

    def __init__(self, told: Callable[..., Any]) -> None:
        self._told = told

    def __call__(self, *args: Any) -> Any:
        return self._told(*args)

    def __reduce__(self) -> Tuple[Any, Tuple[Any, str]]:
        return getattr, (nullcontext(), "__exit__")
