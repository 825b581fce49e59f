"""How often the modules that train are called during a window, in a loop that calls them more often in some steps."""

from __future__ import annotations

import weakref
from typing import Any, List, Sequence

_called = [0]
"""By how many calls so far; one list, since hooks on a model that the user saves must be found by their name."""


def _count(module: Any, args: Any) -> None:
    _called[0] += 1


class RootCalls:
    """Counts between `begin` and `end`. The hooks on the modules are there for as long."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = [weakref.ref(root) for root in roots]
        self._hooks: List[Any] = []

    @property
    def number(self) -> int:
        """Calls that were counted so far, in this window and those before it."""
        return _called[0]

    def begin(self) -> None:
        alive = [root for root in (reference() for reference in self._roots) if root is not None]
        self._hooks = [root.register_forward_pre_hook(_count) for root in alive]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
