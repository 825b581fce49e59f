"""`non_blocking`: the training loop's copies of pinned batches to a device go on while the host does other things. The
effect is checked by the number of calls that did not wait.

Only the lines are meant of which the source shows that they copy a batch and wait for it, as in `.to(device)`.
"""

from __future__ import annotations

import os
import threading
from types import FrameType
from typing import Any, List, Optional, Set, Tuple

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.patches import Patches
from ..process.source_trees import SourceTrees
from ..process.user_code import Line
from . import GuestContext, Knob, Refused
from ._device_copies import waiting_copies

NAME = "non_blocking"
_COPYING = ("to", "cuda")


class NonBlocking(Knob):
    name = NAME

    def __init__(self) -> None:
        self._early = 0
        self._patches = Patches()

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        if device.startswith("cpu"):
            return None
        lines: Set[Line] = set()
        calls: List[List[Any]] = []
        file, copies = _copies_of_the_loop(get_frame(1))
        for call in copies:
            lines |= {(file, line) for line in range(call.lineno, (call.end_lineno or call.lineno) + 1)}
            told = [call.func.attr, os.path.abspath(file), call.lineno]
            if told not in calls:
                calls.append(told)
        steps.noted[NAME] = lines
        return {"calls": calls} if calls else None

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        lines: Set[Line] = context.steps.noted.get(NAME) or set()
        if not lines:
            raise Refused("no line was seen that copies a batch to the device and waits for it")
        thread = threading.get_ident()
        for name in _COPYING:
            self._patches.put(torch.Tensor, name, lambda original: self._not_waiting(original, lines, thread))

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return True if self._early else None

    def _not_waiting(self, original: Any, lines: Set[Line], thread: int) -> Any:
        is_compiling = torch.compiler.is_compiling

        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or threading.get_ident() != thread or not tensor.is_cpu or not tensor.is_pinned():
                return original(tensor, *args, **kwargs)
            frame = get_frame(1)
            if (frame.f_code.co_filename, frame.f_lineno) not in lines:
                return original(tensor, *args, **kwargs)
            self._early += 1
            return original(tensor, *args, **{**kwargs, "non_blocking": True})

        return copy


KNOB = NonBlocking


def _copies_of_the_loop(frame: Optional[FrameType]) -> Tuple[str, List[Any]]:
    """The file of the user's loop that asks for batches, and the calls in it that copy to a device and wait."""
    trees = SourceTrees()
    while frame is not None:
        file, block = frame.f_code.co_filename, trees.block(frame)
        tree = trees.tree(file)
        copies = [] if block is None or tree is None else waiting_copies(block, frame.f_lineno, tree)
        if copies:
            return file, copies
        frame = frame.f_back
    return "", []
