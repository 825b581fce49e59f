"""`intra_op_threads`: the number of threads that one operation uses in the main process. The effect is checked by
torch's own count while the model computes: with OpenMP the count belongs to each thread, and another thread may request
the batches."""

from __future__ import annotations

from typing import Any

import torch

from ..loop.steps import Steps
from ._held import Held
from ._set_by import told, watch_function, written

NAME = "intra_op_threads"
_set = torch.set_num_threads


class IntraOpThreads(Held):
    name = NAME

    @classmethod
    def stands(cls) -> Any:
        return torch.get_num_threads()

    def put(self, value: Any) -> None:
        _set(value)

    @classmethod
    def watch(cls, steps: Steps) -> None:
        watch_function(steps, NAME, _set)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return {"set_by": told(steps, NAME), "written": written(steps, NAME)}


KNOB = IntraOpThreads
