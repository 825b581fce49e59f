"""Attributes replaced in place for a while, as for a window, and restored after it."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Tuple

_ABSENT = object()


class Patches:
    """The attributes that were replaced, newest last."""

    def __init__(self) -> None:
        self._put: List[Tuple[Any, str, Any, Any]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace `owner.name` by `make(it)`, which looks like the original. Does nothing if there is none."""
        original = getattr(owner, name, None)
        if original is None:
            return
        replacement = functools.wraps(original)(make(original))
        self._put.append((owner, name, vars(owner).get(name, _ABSENT), replacement))
        setattr(owner, name, replacement)

    def take_off(self) -> None:
        """Restore everything except attributes that others have replaced in the meantime."""
        while self._put:
            owner, name, original, replacement = self._put.pop()
            if vars(owner).get(name) is not replacement:
                continue
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
