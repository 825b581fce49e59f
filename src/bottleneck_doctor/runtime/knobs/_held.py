"""Shared by the knobs that replace a value of torch's that applies to the whole process.

The training may set the value again, at the start of an epoch or in every step. So the knob sets it again before each
step, and its value while the model computes decides whether the knob took effect.
"""

from __future__ import annotations

from typing import Any, List

from ..process.compiled import is_compiled_in_place
from ..process.hook import Hook
from . import GuestContext, Knob


class Held(Knob):
    def __init__(self) -> None:
        self._wanted: Any = None
        self._before: Any = None
        self._applied = False
        self._held = True
        self._hooks: List[Any] = []

    @classmethod
    def stands(cls) -> Any:
        """The value now. Must not raise."""
        raise NotImplementedError

    def put(self, value: Any) -> None:
        raise NotImplementedError

    def remember(self) -> None:
        """Note the user's value, for `turn_back`. May raise."""
        self._before = self.stands()

    def turn_back(self) -> None:
        """Restore the user's value. Must not raise."""
        self.put(self._before)

    def apply(self, value: Any, context: GuestContext) -> None:
        self._wanted = value
        # Also where it stands so already: between two steps that the program puts another for.
        self.remember()
        self._applied = True
        self.put(value)
        for root in context.steps.roots:
            # One that was compiled in place would run the hook inside of its graph, and be compiled again for it.
            if not is_compiled_in_place(root):
                self._hooks.append(root.register_forward_pre_hook(Hook(self._look)))

    def before_step(self, context: GuestContext) -> None:
        if self._applied and self.stands() != self._wanted:
            self.put(self._wanted)

    def timed_part_begins(self, context: GuestContext) -> None:
        while self._hooks:
            self._hooks.pop().remove()

    def revert(self, context: GuestContext) -> None:
        self.timed_part_begins(context)
        if self._applied:
            self._applied = False
            self.turn_back()

    def effect(self, value: Any, context: GuestContext) -> Any:
        self._look()
        return self._held

    def _look(self, *ignored: Any) -> None:
        self._held = self._held and self.stands() == self._wanted
