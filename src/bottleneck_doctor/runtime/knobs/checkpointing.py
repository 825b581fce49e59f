"""`checkpointing`: activation checkpointing of `torch.utils.checkpoint`; False keeps activations instead of computing
them a second time in the backward pass. The effect is checked by the number of calls that were not checkpointed.

torch looks its two ways of checkpointing up in its own module at each call. So they are replaced there, which also
holds for libraries that took `checkpoint` itself long before. The process may need much more memory: a window that
sees it run short is given up.
"""

from __future__ import annotations

import functools
import os
from types import FrameType
from typing import Any, Callable, ClassVar, Dict, Iterator, Optional, Set, Tuple

import torch
import torch.utils.checkpoint

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.user_code import is_users_file
from . import GuestContext, Knob
from ._memory import MemoryLimit
from ._modules import any_is_compiled

NAME = "checkpointing"
MOST_LINES = 16
"""So many lines that call it are kept."""
_FUNCTION = "checkpoint"
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_MODULE: Any = torch.utils.checkpoint
_GENERATORS = ("_checkpoint_without_reentrant_generator", "_checkpoint_without_reentrant_generator_impl")
"""Since torch 2.15, it is the second that `checkpoint` calls."""


class _Replaced:
    """Both ways of checkpointing, replaced until `put_back`. What others have replaced meanwhile stays theirs.

    `generator_for`: from what torch has to what takes its place. `direct`: what the other way's calls are answered
    with. The class itself stays where it is, because libraries derive from it.
    """

    def __init__(self, generator_for: Callable[[Any], Any], direct: Callable[..., Any]) -> None:
        self._generators: Dict[str, Any] = {}
        for name in _GENERATORS:
            original = getattr(_MODULE, name, None)
            if original is not None:
                new = generator_for(original)
                self._generators[name] = (original, new)
                setattr(_MODULE, name, new)
        self._function: Any = _MODULE.CheckpointFunction
        whole = self._function

        def apply(cls: Any, *args: Any) -> Any:
            return direct(*args) if cls is whole else _applied(cls, *args)

        self._apply = classmethod(apply)
        whole.apply = self._apply

    def put_back(self) -> None:
        for name, (original, new) in self._generators.items():
            if getattr(_MODULE, name, None) is new:
                setattr(_MODULE, name, original)
        if vars(self._function).get("apply") is self._apply:
            del self._function.apply


class _Seen:
    """Calls with gradients on, until the loop is found."""

    calls = 0
    lines: ClassVar[Set[Tuple[str, int]]] = set()
    """Those of the user's code that call torch's `checkpoint`."""
    others = False
    """Whether a library calls it, too."""
    watching: Optional[_Replaced] = None


class Checkpointing(Knob):
    name = NAME

    def __init__(self) -> None:
        self._memory: Optional[MemoryLimit] = None
        self._kept = 0
        self._replaced: Optional[_Replaced] = None

    @classmethod
    def watch(cls, steps: Steps) -> None:
        if _Seen.watching is None:
            function = _MODULE.CheckpointFunction
            _Seen.watching = _Replaced(_counting, lambda *args: _counted(_applied, function, *args))

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        if _Seen.watching is not None:
            _Seen.watching.put_back()
        if any_is_compiled(steps):
            return None  # What is compiled calls neither way again.
        if not _Seen.calls:
            return None
        own = [] if _Seen.others else [[_FUNCTION, os.path.abspath(file), line] for file, line in sorted(_Seen.lines)]
        return {"count": _Seen.calls, "calls": own}

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            return
        self._memory = MemoryLimit(context.device)
        self._kept = 0

        def generator(*args: Any, **kwargs: Any) -> Iterator[None]:
            self._kept += 1
            yield

        def direct(function: Any, preserve: Any, *args: Any) -> Any:
            self._kept += 1
            return function(*args)

        self._replaced = _Replaced(lambda original: generator, direct)

    def before_step(self, context: GuestContext) -> None:
        if self._replaced is not None and self._memory is not None:
            self.gave_up = self._memory.short()
            if self.gave_up:
                self.revert(context)

    def revert(self, context: GuestContext) -> None:
        replaced, self._replaced = self._replaced, None
        if replaced is not None:
            replaced.put_back()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._kept > 0


KNOB = Checkpointing


def _applied(cls: Any, *args: Any) -> Any:
    """What `apply` of a function of torch's does where nobody replaced it."""
    return super(_MODULE.CheckpointFunction, cls).apply(*args)


def _counted(original: Any, *args: Any, **kwargs: Any) -> Any:
    if torch.is_grad_enabled():
        _Seen.calls += 1
        if len(_Seen.lines) < MOST_LINES:
            _note_caller()
    return original(*args, **kwargs)


def _note_caller() -> None:
    """Note the line that calls torch's `checkpoint`: the first one outside of torch and this file."""
    frame: Optional[FrameType] = get_frame(1)
    while frame is not None and frame.f_code.co_filename.startswith((_TORCH, __file__)):
        frame = frame.f_back
    if frame is None or not is_users_file(frame.f_code.co_filename):
        _Seen.others = True
    else:
        _Seen.lines.add((frame.f_code.co_filename, frame.f_lineno))


def _counting(original: Any) -> Any:
    return functools.partial(_counted, original)
