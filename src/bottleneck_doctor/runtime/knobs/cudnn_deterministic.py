"""`cudnn_deterministic`: whether cuDNN avoids algorithms whose results differ from run to run. The effect is checked by
torch's own state while the model computes."""

from __future__ import annotations

from typing import Any

import torch

from ..loop.steps import Steps
from ._set_by import told, watch_attribute
from ._switch import Switch


class CudnnDeterministic(Switch):
    name = "cudnn_deterministic"

    @classmethod
    def is_on(cls) -> bool:
        return bool(torch.backends.cudnn.deterministic)

    @classmethod
    def watch(cls, steps: Steps) -> None:
        watch_attribute(steps, cls.name, torch.backends.cudnn, "deterministic")

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return {"set_by": told(steps, cls.name)}

    def turn(self, on: bool) -> None:
        torch.backends.cudnn.deterministic = on


KNOB = CudnnDeterministic
