"""`no_autocast`: the user's own autocast, entered with `enabled=False`. The effect is that it would have been on.

Contexts that are entered during a window stay off, whoever enters them: a `with`, a decorated function or a trainer.
One that encloses the whole loop is switched off at each step. When the window ends, every context that is still open
has the state again that the user wrote.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any, List, Optional

import torch

from ..loop.steps import Steps
from . import GuestContext, Knob
from ._modules import any_is_compiled

_CLASS: Any = torch.amp.autocast_mode.autocast


class NoAutocast(Knob):
    name = "no_autocast"

    def __init__(self) -> None:
        self._device = "cpu"
        self._thread = 0
        self._enclosing = False
        """Whether the thread that asks for batches is under autocast as written, since before the window."""
        self._depth = 0
        """In how many contexts it was then. A `with` that began before ends with torch's own `__exit__`, unseen."""
        self._open: List[Any] = []
        """Contexts of that thread that were entered since, outermost first."""
        self._seen = False
        self._enter: Any = None
        self._exit: Any = None

    def apply(self, value: Any, context: GuestContext) -> None:
        self._device = context.device.split(":")[0]
        self._thread = get_ident()
        self._enclosing = bool(torch.is_autocast_enabled(self._device))
        self._depth = _nesting()
        self._seen = self._enclosing
        enter, leave = _CLASS.__enter__, _CLASS.__exit__
        knob = self

        def entered(region: Any) -> Any:
            wanted, region._enabled = region._enabled, False
            try:
                return enter(region)
            finally:
                region._enabled = wanted
                knob._has_entered(region, wanted)

        def left(region: Any, *error: Any) -> Any:
            knob._has_left(region)
            return leave(region, *error)

        self._enter, self._exit = enter, leave
        _CLASS.__enter__, _CLASS.__exit__ = entered, left
        self.before_step(context)

    def before_step(self, context: GuestContext) -> None:
        if self._enter is not None and get_ident() == self._thread:
            self._look_around()
            if torch.is_autocast_enabled(self._device):
                torch.set_autocast_enabled(self._device, False)

    def revert(self, context: GuestContext) -> None:
        if self._enter is None:
            return
        _CLASS.__enter__, _CLASS.__exit__ = self._enter, self._exit
        self._enter = None
        if get_ident() != self._thread:
            return  # The state belongs to the thread that trains, which leaves its contexts at the end of the step.
        self._look_around()
        state = self._enclosing
        for region in self._open:
            if region.device == self._device:
                region.prev, state = state, region._enabled
        torch.set_autocast_enabled(self._device, bool(state))
        self._open.clear()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._seen

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return "the model is compiled, and would be compiled again without autocast" if any_is_compiled(steps) else ""

    def _has_entered(self, region: Any, wanted: bool) -> None:
        self._seen = self._seen or (wanted and region.device == self._device)
        if get_ident() == self._thread:
            self._open.append(region)
            self._look_around()

    def _has_left(self, region: Any) -> None:
        if get_ident() == self._thread and any(each is region for each in self._open):
            while self._open.pop() is not region:
                pass

    def _look_around(self) -> None:
        """Notice that a context which began before the window has been left."""
        if _nesting() - len(self._open) < self._depth:
            self._enclosing = False


def _nesting() -> int:
    """In how many autocast contexts this thread is."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


KNOB = NoAutocast
