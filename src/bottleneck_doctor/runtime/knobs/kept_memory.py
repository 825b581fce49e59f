"""`kept_memory`: whether large blocks of memory that are freed stay in the process, as they do where glibc's variables
say so when a program starts. The effect is checked with a block of our own.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from ..loop.steps import Steps
from ..process import heap
from . import GuestContext, Knob, Refused
from ._memory import MemoryLimit

NAME = "kept_memory"


class KeptMemory(Knob):
    name = NAME

    def __init__(self) -> None:
        self._memory: Optional[MemoryLimit] = None
        """None while the setting is not applied."""

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        return {"obstacle": heap.obstacle()}

    def apply(self, value: Any, context: GuestContext) -> None:
        why = heap.obstacle()
        if why:
            raise Refused(why)
        self._memory = MemoryLimit(context.device)
        try:
            heap.of_this_process().keep()
        except heap.Refused as refused:
            raise Refused(str(refused)) from refused

    def before_step(self, context: GuestContext) -> None:
        if self._memory is not None:
            self.gave_up = self._memory.short()
            if self.gave_up:
                self.revert(context)

    def revert(self, context: GuestContext) -> None:
        if self._memory is not None:
            self._memory = None
            heap.of_this_process().give_back()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._memory is not None and heap.of_this_process().keeps()


KNOB = KeptMemory
