"""Hooks that knobs attach to the user's modules. A copy of a module gets a hook that does nothing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Callable, Tuple


class Hook:
    """A hook of ours on a module of the user's. A copy of that module, as weights are averaged or a best model is kept,
    gets one that does nothing: nobody would ever take ours off it. So does a pickled one, and needs nothing of ours."""

    def __init__(self, told: Callable[..., Any]) -> None:
        self._told = told

    def __call__(self, *args: Any) -> Any:
        return self._told(*args)

    def __reduce__(self) -> Tuple[Any, Tuple[Any, str]]:
        return getattr, (nullcontext(), "__exit__")
