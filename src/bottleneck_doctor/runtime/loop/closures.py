"""Backward passes inside an optimizer's step, whose closure makes one each time it is called.

LBFGS calls its closure twenty times a step, or as often as the whole training takes. Where such a step takes long, each
of these passes is taken for the end of one, and what lies between two steps of the optimizer belongs to none.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

from ..process.originals import now
from .records import Alone

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]
"""Positional ones, of which the optimizer is the first, and those by name."""


class Closures:
    """Counts the passes. `row`: those since the last batch, as if no time went by between two steps of the optimizer.
    `wrapping`: whether closures are wrapped, so that it is known what runs inside one; they are in any case while each
    pass is a step, and while somebody watches, as `watching` tells."""

    def __init__(self, watching: Callable[[], Any] = lambda: None) -> None:
        self.watching = watching
        self.passes = 0
        self.row = Alone()
        self.optimizer: Any = None
        """The one that makes its step now, or made the last one."""
        self.steps_in_row = 0
        """The optimizer's steps since the last batch, with the one that is being made."""
        self.wrapping = True
        self.are_steps = False
        """Whether each pass is a step of the loop that was found."""
        self.within = False
        """Whether a closure is being called."""
        self.on_step_begins: Optional[Callable[[], None]] = None
        self.on_step_ended: Optional[Callable[[], None]] = None
        """Told where the optimizer's step does so, where each pass is a step of the loop."""
        self._left_at: Optional[float] = None
        self._away = 0.0
        """Seconds in which no optimizer made a step, since the row's first pass."""

    def step_begins(self, optimizer: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Arguments]:
        """The optimizer begins a step. Returns other arguments for it; None leaves them."""
        self.optimizer = optimizer
        self.steps_in_row += 1
        if self._left_at is not None and self.row.count:
            self._away += now() - self._left_at
        self._left_at = None
        if self.on_step_begins is not None:
            self.on_step_begins()
        if not (self.wrapping or self.are_steps or self.watching() is not None):
            return None
        if len(args) > 1 and callable(args[1]):
            return (args[0], self._wrapped(args[1]), *args[2:]), kwargs
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": self._wrapped(kwargs["closure"])}
        return None

    def step_ended(self) -> None:
        """It has ended its step."""
        self._left_at = now()
        if self.on_step_ended is not None:
            self.on_step_ended()

    def passed(self, line: Any) -> None:
        """A backward pass has ended inside the optimizer's step, which began at that line of the user's."""
        self.passes += 1
        self.row.add(("closure", line), away=self._away)

    def lasted(self) -> float:
        """Seconds of the optimizer's steps since the first pass of the row."""
        return self.row.lasted() - self._away

    def batch_delivered(self) -> None:
        """A loader gave a batch: steps may be made of it."""
        self.row.clear()
        self.steps_in_row, self._away = 0, 0.0

    def _wrapped(self, closure: Any) -> Any:
        @functools.wraps(closure)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.within = True
            watch = self.watching()
            if watch is not None:
                watch.closure_begins()
            try:
                return closure(*args, **kwargs)
            finally:
                self.within = False
                watch = self.watching()
                if watch is not None:
                    watch.closure_ended()

        return call
