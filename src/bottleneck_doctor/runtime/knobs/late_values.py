"""`late_values`: numbers that the training loop takes out of tensors on a device only to record them (`loss.item()`);
True gives it the number of the window's first step again, so that the host need not wait for the device. The effect is
checked by the number of calls that waited for nothing.

That is what recording a number now and then is worth at most. Only lines are meant of which the source shows that
nothing is decided by what they take, and of these, only calls by the thread that trains.
"""

from __future__ import annotations

import os
import threading
from types import CodeType, FrameType
from typing import Any, Dict, Optional, Set, Tuple

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.patches import Patches
from ..process.recorded_values import taken_values
from ..process.source_trees import SourceTrees
from . import GuestContext, Knob, Refused

NAME = "late_values"
_TAKING = ("item", "__float__")

Line = Tuple[str, int]
"""A file, as its code names it, and a line."""


class LateValues(Knob):
    name = NAME

    def __init__(self) -> None:
        self._early = 0
        self._known: Dict[Tuple[CodeType, int], Any] = {}
        self._patches = Patches()

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        if device.startswith("cpu"):
            return None
        lines = _lines_of_the_loop(get_frame(1))
        recorded = {line for line, only in lines.items() if only}
        steps.noted[NAME] = recorded
        if recorded:
            return {"obstacle": "", "lines": sorted((os.path.abspath(file), line) for file, line in recorded)}
        if lines:
            return {"obstacle": "the training loop may go by the numbers that it takes out of tensors"}
        return {"obstacle": "the training loop takes no number out of a tensor"}

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        lines: Set[Line] = context.steps.noted.get(NAME) or set()
        if not lines:
            raise Refused("no line was seen that takes a number out of a tensor only to record it")
        thread = threading.get_ident()
        for name in _TAKING:
            self._patches.put(torch.Tensor, name, lambda original: self._taking(original, lines, thread))

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()
        self._known.clear()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return True if value and self._early else None  # Some programs record in one of many steps.

    def _taking(self, original: Any, lines: Set[Line], thread: int) -> Any:
        known, is_compiling = self._known, torch.compiler.is_compiling

        def take(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not waits(tensor) or threading.get_ident() != thread:
                return original(tensor, *args, **kwargs)
            frame = get_frame(1)
            if (frame.f_code.co_filename, frame.f_lineno) not in lines:
                return original(tensor, *args, **kwargs)
            place = (frame.f_code, frame.f_lasti)  # Several may stand on one line.
            if place in known:
                self._early += 1
            else:
                known[place] = original(tensor, *args, **kwargs)
            return known[place]

        return take


KNOB = LateValues


def waits(tensor: Any) -> bool:
    """Whether the host has to wait for a device until it knows a number of this tensor."""
    return str(tensor.device.type) != "cpu"


def _lines_of_the_loop(frame: Optional[FrameType]) -> Dict[Line, bool]:
    """The lines of the user's loops that run at this moment and take numbers out of tensors, and whether they only
    record them."""
    trees, found = SourceTrees(), {}
    while frame is not None:
        block = trees.block(frame)
        if block is not None:
            for line, only in taken_values(block, frame.f_lineno).items():
                found[frame.f_code.co_filename, line] = only
        frame = frame.f_back
    return found
