"""`checkpointing`: activation checkpointing of `torch.utils.checkpoint`; False keeps activations instead of computing
them a second time in the backward pass. The effect is checked by the number of calls that were not checkpointed.

torch looks its two ways of checkpointing up in its own module at each call. So they are replaced there, which also
holds for libraries that took `checkpoint` itself long before. The process may need much more memory: a window that
sees it run short is given up.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Optional

import torch
import torch.utils.checkpoint

from ..loop.steps import Steps
from . import GuestContext, Knob
from ._memory import MemoryLimit
from ._modules import is_compiled

NAME = "checkpointing"
_MODULE: Any = torch.utils.checkpoint
_FUNCTION = "CheckpointFunction"
_GENERATORS = ("_checkpoint_without_reentrant_generator", "_checkpoint_without_reentrant_generator_impl")
"""Since torch 2.15, it is the second that `checkpoint` calls."""
_original: Dict[str, Any] = {}
"""Both ways as torch has them."""


class _Seen:
    """Calls with gradients on, until the loop is found."""

    calls = 0


class Checkpointing(Knob):
    name = NAME

    def __init__(self) -> None:
        self._memory: Optional[MemoryLimit] = None
        self._kept = 0
        self._applied = False

    @classmethod
    def watch(cls, steps: Steps) -> None:
        _original.update({name: getattr(_MODULE, name) for name in (_FUNCTION, *_GENERATORS) if hasattr(_MODULE, name)})
        _replace(_counting, _Counting)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        _put_back()
        if any(is_compiled(module) for root in steps.roots for module in root.modules()):
            return None  # What is compiled calls neither way again.
        return {"calls": _Seen.calls} if _Seen.calls else None

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            return
        self._memory = MemoryLimit(context.device)
        self._kept = 0
        self._applied = True
        knob = self

        def generator(*args: Any, **kwargs: Any) -> Iterator[None]:
            knob._kept += 1
            yield

        class Direct:
            @staticmethod
            def apply(function: Any, preserve: Any, *args: Any) -> Any:
                knob._kept += 1
                return function(*args)

        _replace(lambda original: generator, Direct)

    def before_step(self, context: GuestContext) -> None:
        if self._applied and self._memory is not None:
            self.gave_up = self._memory.short()
            if self.gave_up:
                self.revert(context)

    def revert(self, context: GuestContext) -> None:
        if self._applied:
            self._applied = False
            _put_back()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._kept > 0


KNOB = Checkpointing


def _replace(generator_for: Callable[[Any], Any], function: Any) -> None:
    for name, original in _original.items():
        setattr(_MODULE, name, function if name == _FUNCTION else generator_for(original))


def _put_back() -> None:
    for name, original in _original.items():
        setattr(_MODULE, name, original)


def _counting(original: Any) -> Any:
    def generator(*args: Any, **kwargs: Any) -> Any:
        _Seen.calls += torch.is_grad_enabled()
        return original(*args, **kwargs)

    return generator


class _Counting:
    @staticmethod
    def apply(*args: Any) -> Any:
        _Seen.calls += torch.is_grad_enabled()
        return _original[_FUNCTION].apply(*args)
