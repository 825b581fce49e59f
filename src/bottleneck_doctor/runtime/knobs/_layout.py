"""Tensors that are stored in another memory layout for a while, and reasons why a model's can't be."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

import torch

from ..loop.steps import Steps
from ._modules import is_compiled

Strides = Tuple[int, ...]

_SEVERAL = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
"""Wrappers for several processes whose buffers follow the layout of the weights, by class name."""


def channels_last(shape: Sequence[int]) -> Strides:
    """Strides of a 4-D tensor in `torch.channels_last`. Dimensions of length 1 get the strides that `Module.to`
    gives."""
    _, channels, height, width = shape
    return channels * height * width, 1, channels * width, channels


def contiguous(shape: Sequence[int]) -> Strides:
    """Strides of a tensor in `torch.contiguous_format`."""
    return torch.empty(tuple(shape), device="meta").stride()


def in_order(tensor: torch.Tensor, strides: Strides) -> torch.Tensor:
    """A copy with these strides."""
    made = torch.empty_strided(tensor.size(), strides, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor)


class Moved:
    """A tensor whose data has moved to another place, in another order. The old memory is kept, and gets the data back,
    because others may hold views of it."""

    def __init__(self, tensor: torch.Tensor, strides: Strides) -> None:
        self.tensor = tensor
        self._own = tensor.data
        elsewhere = in_order(self._own, strides)
        self._place = elsewhere.data_ptr()
        tensor.data = elsewhere

    def back(self) -> None:
        """Put the current data back into the old memory. A tensor that the program gave another shape or type stays."""
        now, own = self.tensor.data, self._own
        if (now.shape, now.dtype, now.device) != (own.shape, own.dtype, own.device):
            return
        if now.data_ptr() == self._place:
            self.tensor.data = own.copy_(now)
        elif now.stride() != own.stride():  # The program has put others in their place.
            self.tensor.data = in_order(now, own.stride())


def tensors(root: Any) -> Iterator[torch.Tensor]:
    """Parameters and buffers of a module, as `Module.to` finds them."""
    yield from root.parameters()
    yield from root.buffers()


def every_tensor(steps: Steps) -> List[torch.Tensor]:
    """Those of all models of a loop, each once."""
    return list({id(tensor): tensor for root in steps.roots for tensor in tensors(root)}.values())


def of_optimizers(steps: Steps, parameter: torch.Tensor) -> Iterator[torch.Tensor]:
    """What optimizers keep for every number of a parameter, such as momentum."""
    for optimizer in steps.optimizers:
        state: Dict[str, Any] = optimizer.state.get(parameter) or {}
        for value in state.values():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                yield value


def obstacle(steps: Steps) -> str:
    """Why the layout of this model's weights can't be changed in a running process; "" if it can."""
    if has_compiled(steps):
        return "parts of the program are compiled, and the compiler chooses the layout of convolutions itself"
    if is_scripted(steps):
        return "the model is a TorchScript program, which was made for its present layout"
    if is_for_several(steps):
        return "the model is wrapped for several processes, with buffers that follow the present layout of its weights"
    if any(isinstance(optimizer, torch.optim.LBFGS) for optimizer in steps.optimizers):
        return "LBFGS accepts gradients in one layout only"
    return _obstacle_of_weights(steps)


def has_compiled(steps: Steps) -> bool:
    """Whether a part of the program is compiled, for weights as they are."""
    return any(map(is_compiled, _modules(steps))) or bool(_compiled_frames())


def is_scripted(steps: Steps) -> bool:
    return any(isinstance(module, torch.jit.ScriptModule) for module in _modules(steps))


def is_for_several(steps: Steps) -> bool:
    """Whether a model is wrapped for several processes, with buffers that are made for its weights."""
    return any(kind.__name__ in _SEVERAL for module in _modules(steps) for kind in type(module).__mro__)


def _modules(steps: Steps) -> Iterator[Any]:
    return (module for root in steps.roots for module in root.modules())


def without_own_memory(weights: Iterable[torch.Tensor]) -> str:
    """Why these can't be moved in memory without anybody's noticing; "" if they can."""
    places = set()
    for tensor in weights:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            return f"some weights of the model are of a special kind ({type(tensor).__name__})"
        storage = tensor.untyped_storage()
        if tensor.device.type == "cpu" and storage.is_shared():
            return "the weights of the model are shared with other processes"
        if storage.nbytes() != tensor.numel() * tensor.element_size() or storage.data_ptr() in places:
            return "some weights of the model share a block of memory with others"
        places.add(storage.data_ptr())
    return ""


def _compiled_frames() -> int:
    """Functions that were compiled so far. One of them may call the model, and depend on the strides of its weights."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters.get("frames", {}).get("ok", 0))


def _obstacle_of_weights(steps: Steps) -> str:
    every = every_tensor(steps)
    if any(tensor.dim() == 5 for tensor in every):
        return "the model has 3-D convolutions too, to which `channels_last` can't be applied"
    pictures = [tensor for tensor in every if tensor.dim() == 4]
    reason = without_own_memory(pictures)
    if reason:
        return reason
    kept = (kept for tensor in pictures for kept in of_optimizers(steps, tensor))
    packed = any(not each.is_floating_point() and not each.is_complex() for each in kept)
    return "the optimizer packs its state in the layout of the weights" if packed else ""
