"""`pin_memory` with non-blocking copies: batches in page-locked memory, copied while the device computes.

The effect is checked by whether the batch's tensors are pinned. `Tensor.to` and `Tensor.cuda` are made non-blocking for
pinned sources only, which is what the user would write by hand.
"""

from __future__ import annotations

import functools
from typing import Any, Optional

import torch

from ..loop.batches import tensors_of
from . import GuestContext, Knob


class PinMemory(Knob):
    name = "pin_memory"
    layer = "loader"
    argument = True

    def __init__(self) -> None:
        self._to = torch.Tensor.to
        self._cuda = torch.Tensor.cuda

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        original_to, original_cuda = self._to, self._cuda

        @functools.wraps(original_to)
        def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if tensor.device.type == "cpu" and tensor.is_pinned():
                kwargs.setdefault("non_blocking", True)
                try:
                    return original_to(tensor, *args, **kwargs)
                except TypeError:  # The user gave it as a positional argument.
                    del kwargs["non_blocking"]
            return original_to(tensor, *args, **kwargs)

        @functools.wraps(original_cuda)
        def cuda(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if len(args) < 2 and tensor.is_pinned():
                kwargs.setdefault("non_blocking", True)
            return original_cuda(tensor, *args, **kwargs)

        torch.Tensor.to = to  # type: ignore[assignment]
        torch.Tensor.cuda = cuda  # type: ignore[assignment]

    def revert(self, context: GuestContext) -> None:
        torch.Tensor.to = self._to  # type: ignore[method-assign]
        torch.Tensor.cuda = self._cuda  # type: ignore[method-assign]

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        tensors = tensors_of(context.batch)
        if not tensors:
            return None
        return all(tensor.is_pinned() for tensor in tensors) == bool(value)


KNOB = PinMemory
