"""`pin_memory`: batches in page-locked memory. The effect is checked by whether the batch's tensors are pinned.

Whether copies of them wait is another knob's (`non_blocking`).
"""

from __future__ import annotations

from typing import Any, Optional

from ..loop.batches import tensors_of
from . import GuestContext, Knob


class PinMemory(Knob):
    name = "pin_memory"
    layer = "loader"
    argument = True

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        tensors = tensors_of(context.batch)
        if not tensors:
            return None
        return all(tensor.is_pinned() for tensor in tensors) == bool(value)


KNOB = PinMemory
