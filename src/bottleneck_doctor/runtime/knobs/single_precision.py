"""`single_precision`: a model that computes in float64 computes in float32. The effect is checked by its outputs.

Weights, their gradients and the optimizer's state change their type where they are. What the model is called with is
converted to float32, and what it returns to float64 again: what the program makes of that, such as the loss, may hold
other numbers in float64, and torch computes no loss of two types. torch's default type is float32 in the model, so that
what it makes for itself has that. After the window all is float64, with the digits that float32 has left. In the midst
of an optimizer's step that calls a closure, what it computes with is in its variables, too.
"""

from __future__ import annotations

import os
from types import FrameType
from typing import Any, Callable, List, Optional

import torch

from ..loop.batches import tensors_of
from ..loop.steps import Steps
from ..process.hook import Hook
from ..process.originals import get_frame
from . import GuestContext, Knob, Refused
from ._layout import every_tensor, has_compiled, is_for_several, is_scripted, without_own_memory
from ._modules import mapped


class SinglePrecision(Knob):
    name = "single_precision"

    def __init__(self) -> None:
        self._changed: List[torch.Tensor] = []
        """Weights and buffers that are float64 in the program."""
        self._hooks: List[Any] = []
        self._default: Optional[torch.dtype] = None
        """The program's default type, while the model computes."""
        self._depth = 0
        """Calls of models that are going on: one may call another."""
        self._seen: Optional[bool] = None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        every = every_tensor(steps)
        types = {tensor.dtype for tensor in every if tensor.is_floating_point() or tensor.is_complex()}
        if torch.float64 not in types:
            return "nothing of the model is in double precision"
        if len(types) > 1:
            return "a part of the model is in double precision, and the rest is not"
        if has_compiled(steps):
            return "parts of the program are compiled, for numbers in double precision"
        if is_scripted(steps):
            return "the model is a TorchScript program, which was made for numbers in double precision"
        if is_for_several(steps):
            return "the model is wrapped for several processes, with buffers for numbers in double precision"
        return without_own_memory(filter(_is_double, every))

    def apply(self, value: Any, context: GuestContext) -> None:
        reason = self.obstacle(context.steps)
        if reason:
            raise Refused(reason)
        self._changed = list(filter(_is_double, every_tensor(context.steps)))
        self._convert(context, _to_single)
        for root in context.steps.roots:
            self._hooks += [
                root.register_forward_pre_hook(Hook(self._called), with_kwargs=True),
                root.register_forward_hook(Hook(self._returned), always_call=True),
            ]

    def revert(self, context: GuestContext) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._convert(context, _to_double)
        self._changed = []
        self._default_back()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._seen

    def _convert(self, context: GuestContext, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        held = _in_variables_of_optimizers() if context.steps.closures.within else []
        for tensor in self._changed:
            tensor.data = change(tensor.data)
            if tensor.is_leaf and tensor.grad is not None:
                tensor.grad.data = change(tensor.grad.data)
            for optimizer in context.steps.optimizers:
                held += tensors_of(optimizer.state.get(tensor))
        # LBFGS has one tensor in several places.
        for kept in {id(each): each for each in held}.values():
            kept.data = change(kept.data)

    def _called(self, module: Any, args: Any, kwargs: Any) -> Any:
        self._depth += 1
        if self._depth > 1:
            return None
        if torch.get_default_dtype() is torch.float64:
            self._default = torch.float64
            torch.set_default_dtype(torch.float32)
        return mapped(args, _to_single), mapped(kwargs, _to_single)

    def _returned(self, module: Any, args: Any, output: Any) -> Any:
        self._depth -= 1
        if self._depth:
            return None
        self._default_back()
        made = [each for each in tensors_of(output) if each.is_floating_point()]
        if made:
            self._seen = bool(self._seen) or any(each.dtype is torch.float32 for each in made)
        return mapped(output, _to_double)

    def _default_back(self) -> None:
        if self._default is not None:
            torch.set_default_dtype(self._default)
            self._default = None


KNOB = SinglePrecision
_OPTIMIZERS = os.path.dirname(os.path.abspath(torch.optim.__file__)) + os.sep


def _in_variables_of_optimizers() -> List[torch.Tensor]:
    """What torch's optimizers that are at work further out hold in their variables."""
    held: List[torch.Tensor] = []
    frame: Optional[FrameType] = get_frame(1)
    while frame is not None:
        if os.path.abspath(frame.f_code.co_filename).startswith(_OPTIMIZERS):
            for value in list(frame.f_locals.values()):
                held += tensors_of(value)
        frame = frame.f_back
    return held


def _is_double(tensor: torch.Tensor) -> bool:
    return tensor.dtype is torch.float64


def _to_single(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype is torch.float64 else tensor


def _to_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.dtype is torch.float32 else tensor
