"""`pin_memory` with non-blocking copies: batches in page-locked memory, copied while the device computes.

The effect is checked by whether the batch's tensors are pinned. `Tensor.to` and `Tensor.cuda` are made non-blocking for
pinned sources only, which is what the user would write by hand.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from ..loop.batches import tensors_of
from ..process.patches import Patches
from . import GuestContext, Knob


class PinMemory(Knob):
    name = "pin_memory"
    layer = "loader"
    argument = True

    def __init__(self) -> None:
        self._patches = Patches()

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            self._patches.put(torch.Tensor, "to", _not_waiting_to)
            self._patches.put(torch.Tensor, "cuda", _not_waiting_cuda)

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        tensors = tensors_of(context.batch)
        if not tensors:
            return None
        return all(tensor.is_pinned() for tensor in tensors) == bool(value)


def _not_waiting_to(original: Any) -> Any:
    def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if tensor.device.type == "cpu" and tensor.is_pinned():
            kwargs.setdefault("non_blocking", True)
            try:
                return original(tensor, *args, **kwargs)
            except TypeError:  # The user gave it as a positional argument.
                del kwargs["non_blocking"]
        return original(tensor, *args, **kwargs)

    return to


def _not_waiting_cuda(original: Any) -> Any:
    def cuda(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if len(args) < 2 and tensor.is_pinned():
            kwargs.setdefault("non_blocking", True)
        return original(tensor, *args, **kwargs)

    return cuda


KNOB = PinMemory
