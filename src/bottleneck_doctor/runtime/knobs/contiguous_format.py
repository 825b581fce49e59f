"""`contiguous_format`: stores the weights of convolutions, their input images, and the optimizer's state for them with
the pixels of a channel next to each other, where the user has them in `channels_last`."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from ..loop.steps import Steps
from ._layout import contiguous, obstacle, tensors
from .channels_last import Laid, for_the_edit, is_weight, layout


class ContiguousFormat(Laid):
    name = "contiguous_format"
    format = torch.contiguous_format
    other = torch.channels_last
    strides = staticmethod(contiguous)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        return for_the_edit(steps)

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        weights = [tensor for root in steps.roots for tensor in tensors(root) if is_weight(tensor)]
        if not any(layout(weight) is torch.channels_last for weight in weights):
            return "no weights of convolutions are in channels_last"
        return obstacle(steps)


KNOB = ContiguousFormat
