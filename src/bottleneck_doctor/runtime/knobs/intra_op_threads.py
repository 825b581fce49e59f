"""`intra_op_threads`: threads that one operation is spread over in the main process. Seen by torch's own count."""

from __future__ import annotations

from typing import Any, Optional

import torch

from . import GuestContext, Knob


class IntraOpThreads(Knob):
    name = "intra_op_threads"

    def __init__(self) -> None:
        self._before: Optional[int] = None

    def apply(self, value: Any, context: GuestContext) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(value)

    def revert(self, context: GuestContext) -> None:
        if self._before is not None:
            torch.set_num_threads(self._before)

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return torch.get_num_threads() == int(value)


KNOB = IntraOpThreads
