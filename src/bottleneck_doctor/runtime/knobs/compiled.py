"""`compiled`: root modules compiled in place, as `module.compile()` does, or in the mode that the value names. The
effect is that torch compiled a graph.

The first step of a window compiles, in the lead-in. What was compiled is kept for later windows of the process. If
torch compiles again while a window is timed, because a batch has another shape, that window has failed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import Any, Dict, List, Optional, Tuple

from torch import distributions

from ..loop.steps import Steps
from ..process.compiled import compiled_graphs
from . import GuestContext, Knob
from ._modules import any_is_compiled

AGAIN = "torch compiled the model again in the middle of the window, because a batch had another shape"

_kept: Dict[Tuple[int, str], Any] = {}
"""What roots were compiled to, by their ids and the mode ("" for torch's own). Each value holds its root, so no other
object gets that id."""


class Compiled(Knob):
    name = "compiled"

    def __init__(self) -> None:
        self._before: List[Tuple[Any, Any]] = []
        self._timed: Optional[int] = None
        self._checked = True
        """Whether torch's distributions checked their values before: torch switches that off for good when it first
        compiles something in a process."""
        self._least = 0
        """How many graphs there were before those of this mode."""

    def apply(self, value: Any, context: GuestContext) -> None:
        self._timed = None
        self.gave_up = ""
        mode = value if isinstance(value, str) else ""
        roots = context.steps.roots
        self._checked = distributions.Distribution._validate_args
        if _kept:
            distributions.Distribution.set_default_validate_args(False)
        self._least = 0 if all((id(root), mode) in _kept for root in roots) else compiled_graphs()
        for root in roots:
            self._before.append((root, getattr(root, "_compiled_call_impl", None)))
            if (id(root), mode) not in _kept:
                root.compile(**{"mode": mode} if mode else {})
                _kept[id(root), mode] = root._compiled_call_impl
            root._compiled_call_impl = _kept[id(root), mode]

    def before_step(self, context: GuestContext) -> None:
        if self._timed is not None and compiled_graphs() > self._timed:
            self.gave_up = AGAIN

    def timed_part_begins(self, context: GuestContext) -> None:
        self._timed = compiled_graphs()

    def revert(self, context: GuestContext) -> None:
        while self._before:
            root, compiled = self._before.pop()
            root._compiled_call_impl = compiled
        distributions.Distribution.set_default_validate_args(self._checked)

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return compiled_graphs() > self._least

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        if not steps.roots:
            return None
        if any_is_compiled(steps):
            return "already on: the model is compiled"
        if steps.by_calls:
            return "some steps call the model more often than others, and calls of a compiled model are not counted"
        if not sys.platform.startswith("linux"):
            return "it is tried on Linux only"
        on_cpu = all(each.device.type == "cpu" for root in steps.roots for each in root.parameters())
        if on_cpu and shutil.which(os.environ.get("CXX") or "g++") is None:
            return "on a CPU, torch compiles with a C++ compiler, and there is none"
        if not on_cpu and importlib.util.find_spec("triton") is None:
            return "on a device, torch compiles with triton, which is not installed"
        return ""


KNOB = Compiled
