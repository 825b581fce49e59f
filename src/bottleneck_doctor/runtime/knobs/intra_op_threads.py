"""`intra_op_threads`: threads that one operation is spread over in the main process. Seen by torch's own count where
the model computes: with OpenMP the count is each thread's own, and another thread may ask for the batches."""

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
