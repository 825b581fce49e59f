"""`cudnn_allow_tf32`: whether cuDNN may compute float32 convolutions and recurrent layers in TensorFloat32. It may,
unless the user forbids it. The effect is checked by torch's own state while the model computes."""

from __future__ import annotations

from typing import Any, List

import torch

from ._switch import Switch
from .float32_precision import own_precision, set_precision

_read = getattr(torch._C, "_get_fp32_precision_getter", None)

_OPERATIONS = ("conv", "rnn")


class CudnnAllowTf32(Switch):
    name = "cudnn_allow_tf32"

    def __init__(self) -> None:
        super().__init__()
        self._operations: List[str] = []

    @classmethod
    def is_on(cls) -> bool:
        # Since torch 2.9 the one flag may not be asked for where a program has set one operation's own.
        return bool(torch.backends.cudnn.allow_tf32) if _read is None else _read("cuda", "conv") == "tf32"

    def turn(self, on: bool) -> None:
        torch.backends.cudnn.allow_tf32 = on

    def remember(self) -> None:
        self._before = bool(torch.backends.cudnn.allow_tf32)
        self._operations = [own_precision("cuda", operation) for operation in _OPERATIONS]

    def turn_back(self) -> None:
        self.turn(self._before)
        for operation, precision in zip(_OPERATIONS, self._operations):
            set_precision("cuda", operation, precision)

    @classmethod
    def own(cls) -> Any:
        if cls.is_on():
            return None
        try:
            return None if torch.backends.cudnn.allow_tf32 else False
        except RuntimeError:  # It is an operation's own precision that was set.
            return None


KNOB = CudnnAllowTf32
