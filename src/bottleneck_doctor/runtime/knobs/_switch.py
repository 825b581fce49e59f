"""What knobs share that turn something of torch's, which is on or off in the whole process, the other way.

Who trains may turn it back: at the start of an epoch, or in every step. It is turned again before each step, and how it
stands while the model computes is what says whether it took effect.
"""

from __future__ import annotations

from typing import Any, List, Optional

from . import GuestContext, Knob
from ._hook import Hook


class Switch(Knob):
    def __init__(self) -> None:
        self._wanted = self._before = False
        self._applied = False
        self._held = True
        self._hooks: List[Any] = []

    @classmethod
    def is_on(cls) -> bool:
        raise NotImplementedError

    def turn(self, on: bool) -> None:
        raise NotImplementedError

    def remember(self) -> None:
        """Note how the user had it, for `turn_back`."""
        self._before = self.is_on()

    def turn_back(self) -> None:
        """As the user had it. Must not raise."""
        self.turn(self._before)

    @classmethod
    def own(cls) -> Any:
        return True if cls.is_on() else None

    def apply(self, value: Any, context: GuestContext) -> None:
        self._wanted = bool(value)
        # Also where it stands so already: between two steps that the program switches it for.
        self.remember()
        self._applied = True
        self.turn(self._wanted)
        for root in context.steps.roots:
            # One that was compiled in place would run the hook inside of its graph, and be compiled again for it.
            if getattr(root, "_compiled_call_impl", None) is None:
                self._hooks.append(root.register_forward_pre_hook(Hook(self._look)))

    def before_step(self, context: GuestContext) -> None:
        if self._applied and self.is_on() != self._wanted:
            self.turn(self._wanted)

    def timed_part_begins(self, context: GuestContext) -> None:
        while self._hooks:
            self._hooks.pop().remove()

    def revert(self, context: GuestContext) -> None:
        self.timed_part_begins(context)
        if self._applied:
            self._applied = False
            self.turn_back()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        self._look()
        return self._held

    def _look(self, *ignored: Any) -> None:
        self._held = self._held and self.is_on() == self._wanted
