"""`flush_denormal`: whether the processor takes numbers next to 0 as 0, those that float32 holds with fewer digits than
all others (denormal, below 1.2e-38). Many processors compute with them in microcode, a hundred times as slowly. The
effect is checked by a product of two such numbers while the model computes.

The mode belongs to a thread. `torch.set_flush_denormal` sets it in the one that calls it, and threads that this one
starts later inherit it, as those of a script do that calls it at its top. So it is set in torch's threads, too.
"""

from __future__ import annotations

from typing import Any, Dict, List

import torch
from torch.utils.hooks import unserializable_hook

from ..loop.batches import tensors_of
from ..loop.steps import Steps
from ._held import Held
from ._thread_pools import in_torch_threads

NAME = "flush_denormal"
ENOUGH = 0.001
"""Part of a tensor's values that are denormal from which on they are worth a word: where one takes 150 cycles, and
others a tenth of one, they make a product more than twice as slow."""
MOST_LOOKS = 512
"""Inputs of modules, and their gradients, that are looked at before the loop is found."""
SAMPLED = 4096
"""Values of a tensor that are looked at."""
_RECURRENT = (torch.nn.RNNBase, torch.nn.RNNCellBase)
_denormal, _one = 5e-324, 1.0


class FlushDenormal(Held):
    name = NAME

    @classmethod
    def stands(cls) -> Any:
        return _denormal * _one == 0.0

    def put(self, value: Any) -> None:
        in_torch_threads(lambda: torch.set_flush_denormal(value))

    @classmethod
    def watch(cls, steps: Steps) -> None:
        look = _Look()
        steps.noted[NAME] = look
        steps.callers.inputs = look.called

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        look = steps.noted.get(NAME)
        if look is not None:
            look.see("the batches", batch)

    @classmethod
    def own(cls) -> Any:
        return cls.stands() or None

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        steps.callers.inputs = None
        look = steps.noted.pop(NAME, None) or _Look()
        if not device.startswith("cpu"):
            return {"obstacle": "the model computes on a device, whose cores are as quick with such numbers"}
        if cls.stands():
            return {"obstacle": "already on: `torch.set_flush_denormal(True)`"}
        if not _can_flush():
            return {"obstacle": "this processor has no such mode"}
        for root in steps.roots:
            for weight in root.parameters():
                look.see("the weights", weight)
                look.see("the gradients", weight.grad)
        for optimizer in steps.optimizers:
            look.see("the state of the optimizer", list(optimizer.state.values()))
        # What is passed back within a recurrent layer, step by step of a sequence, is not seen from outside.
        recurrent = any(isinstance(module, _RECURRENT) for root in steps.roots for module in root.modules())
        likely = look.places or recurrent
        obstacle = "" if likely else "hardly any such number was seen in what the model computes with"
        return {"obstacle": obstacle, "places": look.places}


KNOB = FlushDenormal


class _Look:
    """Where denormal numbers were seen. `places`: in words, the first first."""

    def __init__(self) -> None:
        self.places: List[str] = []
        self._left = MOST_LOOKS

    def called(self, inputs: Any) -> None:
        """A module is called with these."""
        for each in tensors_of(inputs)[: self._left]:
            self._left -= 1
            self.see("what the layers pass on", each)
            if each.requires_grad and each.grad_fn is not None and _can_be_seen(each):
                each.register_hook(self._passed_back)  # type: ignore[no-untyped-call]

    def see(self, place: str, values: Any) -> None:
        for each in tensors_of(values):
            if place not in self.places and denormal_share(each) >= ENOUGH:
                self.places.append(place)

    @unserializable_hook  # type: ignore[untyped-decorator]  # torch warns of others where such a tensor is saved.
    def _passed_back(self, gradient: Any) -> None:
        self.see("the gradients", gradient)


def denormal_share(values: Any) -> float:
    """The part of a tensor's values that are denormal, by a sample; 0.0 for what a CPU computes otherwise with."""
    if not _can_be_seen(values):
        return 0.0
    with torch.no_grad():
        flat = values.detach().view(-1)
        sample = flat[:: max(1, flat.numel() // SAMPLED)].abs()
        few = (sample > 0) & (sample < torch.finfo(sample.dtype).tiny)
        return int(few.sum()) / int(sample.numel())


def _can_be_seen(values: Any) -> bool:
    return (
        type(values) in (torch.Tensor, torch.nn.Parameter)
        and values.device.type == "cpu"
        and values.layout is torch.strided
        and values.dtype in (torch.float32, torch.float64)
        and values.numel() > 0
        and values.is_contiguous()
    )


def _can_flush() -> bool:
    """Whether the processor has the mode, which is off: torch tells only when it is switched on."""
    able = bool(torch.set_flush_denormal(True))
    torch.set_flush_denormal(False)
    return able
