"""`cudnn_benchmark`: whether cuDNN times its algorithms for each shape that it meets, and takes the fastest. The effect
is checked by torch's own state while the model computes."""

from __future__ import annotations

from typing import Any, Dict

import torch

from ..loop.steps import Steps
from ._set_by import told, watch_attribute
from ._switch import Switch


class CudnnBenchmark(Switch):
    name = "cudnn_benchmark"

    @classmethod
    def is_on(cls) -> bool:
        return bool(torch.backends.cudnn.benchmark)

    @classmethod
    def watch(cls, steps: Steps) -> None:
        watch_attribute(steps, cls.name, torch.backends.cudnn, "benchmark")

    def turn(self, on: bool) -> None:
        torch.backends.cudnn.benchmark = on

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        kind = torch.nn.modules.conv._ConvNd
        convolutions = sum(isinstance(module, kind) for root in steps.roots for module in root.modules())
        return {"convolutions": convolutions, "set_by": told(steps, cls.name)}


KNOB = CudnnBenchmark
