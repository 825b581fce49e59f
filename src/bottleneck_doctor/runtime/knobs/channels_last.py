"""`channels_last`: stores the weights of convolutions, their input images, and the optimizer's state for them with the
channels of a pixel next to each other.

Gradients and momentum get the layout of their weights, because an optimizer's step over tensors of two layouts is slow.
A user who changes the layout before the optimizer's first step never has that. The effect is checked by the outputs of
convolutions.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Sequence, Set, Tuple

import torch

from ..loop.steps import Steps
from ..process.hook import Hook
from . import GuestContext, Knob
from ._layout import Moved, Strides, channels_last, every_tensor, in_order, obstacle, of_optimizers, tensors
from ._modules import mapped

_MOST_LAYERS = 64


class Laid(Knob):
    """Weights, pictures and state in the layout `format`, whose strides are those of `strides`."""

    format: ClassVar[torch.memory_format]
    other: ClassVar[torch.memory_format]
    """The one of the two that it is not."""

    @staticmethod
    def strides(shape: Sequence[int]) -> Strides:
        raise NotImplementedError

    def __init__(self) -> None:
        self._moved: List[Moved] = []
        self._weights: List[Tuple[torch.Tensor, Strides]] = []
        """Weights that were moved, each with its own strides."""
        self._known: Set[int] = set()
        """Ids of the gradients and of the optimizers' state that existed for them."""
        self._kept: List[torch.Tensor] = []
        """These tensors, kept alive so that their ids are not used again."""
        self._hooks: List[Any] = []
        self._checks: List[Any] = []
        self._looks = False
        self._seen = False

    def apply(self, value: Any, context: GuestContext) -> None:
        reason = self.obstacle(context.steps) or obstacle(context.steps)
        if reason:
            raise RuntimeError(reason)
        for root in context.steps.roots:
            weights = [tensor for tensor in tensors(root) if tensor.dim() == 4]
            for weight in weights:
                self._move(weight, context.steps)
            if weights:
                self._hooks.append(root.register_forward_pre_hook(Hook(self._called), with_kwargs=True))
            layers = [module for module in root.modules() if _is_convolution(module)]
            self._checks += [layer.register_forward_hook(Hook(self._look)) for layer in layers[:_MOST_LAYERS]]
        self._looks = bool(self._checks)

    def _move(self, weight: torch.Tensor, steps: Steps) -> None:
        own, strides = weight.stride(), self.strides(weight.shape)
        if own == strides:
            return
        self._weights.append((weight, own))
        for tensor in (weight, *_beside(weight, steps)):
            self._kept.append(tensor)
            self._known.add(id(tensor))
            if tensor.stride() != strides:
                self._moved.append(Moved(tensor, strides))

    def timed_part_begins(self, context: GuestContext) -> None:
        _remove(self._checks)

    def revert(self, context: GuestContext) -> None:
        _remove(self._hooks)
        _remove(self._checks)
        while self._moved:
            moved = self._moved.pop()
            try:
                moved.back()
            except RuntimeError:
                pass  # No memory for it: its numbers are right where they are.
        while self._weights:
            weight, own = self._weights.pop()
            for tensor in _beside(weight, context.steps):
                if id(tensor) not in self._known and tensor.stride() == self.strides(tensor.shape):
                    try:
                        tensor.data = in_order(tensor.data, own)
                    except RuntimeError:
                        pass
        self._known.clear()
        self._kept.clear()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        if any(weight.stride() != self.strides(weight.shape) for weight, _ in self._weights if weight.dim() == 4):
            return False
        return self._seen if self._looks else None

    def _called(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return None  # An evaluation: what a user writes is in the training step.
        return mapped(args, self._given), mapped(kwargs, self._given)

    def _given(self, tensor: torch.Tensor) -> torch.Tensor:
        plain = type(tensor) is torch.Tensor and tensor.dim() == 4 and tensor.layout is torch.strided
        return tensor.to(memory_format=self.format) if plain else tensor

    def _look(self, module: Any, args: Any, output: Any) -> None:
        # Pictures of one pixel, or of one channel, lie in both layouts.
        if (
            isinstance(output, torch.Tensor)
            and output.dim() == 4
            and not output.is_contiguous(memory_format=self.other)
        ):
            self._seen = self._seen or output.is_contiguous(memory_format=self.format)


class ChannelsLast(Laid):
    name = "channels_last"
    format = torch.channels_last
    other = torch.contiguous_format
    strides = staticmethod(channels_last)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        weights = [tensor for tensor in every_tensor(steps) if is_weight(tensor)]
        layouts = [layout(weight) for weight in weights]
        return {
            **for_the_edit(steps),
            "weights": len(weights),
            "contiguous": layouts.count(torch.contiguous_format),
            "channels_last": layouts.count(torch.channels_last),
            "obstacle": obstacle(steps) if weights else "",
        }


KNOB = ChannelsLast


def _beside(weight: torch.Tensor, steps: Steps) -> List[torch.Tensor]:
    """The tensors that have one number for each of a weight: its gradient, and the optimizers' state."""
    gradient = weight.grad if weight.is_leaf else None
    found = [] if gradient is None or gradient.layout is not torch.strided else [gradient]
    return [*found, *(kept for kept in of_optimizers(steps, weight) if kept.layout is torch.strided)]


def for_the_edit(steps: Steps) -> Dict[str, Any]:
    """What decides what a user writes. `own_to`: a model has a `to` of its own, which may know devices and types only,
    as that of timm's training tasks. `several`: more than one model has such weights. `no_pictures`: what it is given
    can't be put in order, as it has other dimensions than four, or is a class of the program's."""
    own = any(type(root).to is not torch.nn.Module.to for root in steps.roots)
    with_weights = [root for root in steps.roots if any(map(is_weight, tensors(root)))]
    return {
        **({"own_to": True} if own else {}),
        **({"several": True} if len(with_weights) > 1 else {}),
        **({"no_pictures": True} if steps.callers.take_pictures() is False else {}),
    }


def is_weight(tensor: torch.Tensor) -> bool:
    """Whether it is a convolution's. One row alone is a position's, or a scale's."""
    return tensor.dim() == 4 and tensor.shape[0] > 1


def layout(weight: torch.Tensor) -> Optional[torch.memory_format]:
    """The layout of a tensor; None if it fits both, as for kernels of one pixel, or neither."""
    layouts = [
        each for each in (torch.contiguous_format, torch.channels_last) if weight.is_contiguous(memory_format=each)
    ]
    return layouts[0] if len(layouts) == 1 else None


def _is_convolution(module: Any) -> bool:
    return isinstance(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d))


def _remove(hooks: List[Any]) -> None:
    for hook in hooks:
        hook.remove()
    hooks.clear()
