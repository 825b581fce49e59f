"""`cudnn_deterministic`: whether cuDNN avoids algorithms whose results differ from run to run. The effect is checked by
torch's own state while the model computes."""

from __future__ import annotations

import torch

from ._switch import Switch


class CudnnDeterministic(Switch):
    name = "cudnn_deterministic"

    @classmethod
    def is_on(cls) -> bool:
        return bool(torch.backends.cudnn.deterministic)

    def turn(self, on: bool) -> None:
        torch.backends.cudnn.deterministic = on


KNOB = CudnnDeterministic
