"""`intra_op_threads`: the number of threads that one operation uses in the main process. The effect is checked by
torch's own count while the model computes: with OpenMP the count belongs to each thread, and another thread may request
the batches."""

from __future__ import annotations

from typing import Any

import torch

from ._held import Held


class IntraOpThreads(Held):
    name = "intra_op_threads"

    @classmethod
    def stands(cls) -> Any:
        return torch.get_num_threads()

    def put(self, value: Any) -> None:
        torch.set_num_threads(value)


KNOB = IntraOpThreads
