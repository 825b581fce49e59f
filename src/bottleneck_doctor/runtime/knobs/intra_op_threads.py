"""`intra_op_threads`: the number of threads that one operation uses in the main process. The effect is checked by
torch's own count while the model computes: with OpenMP the count belongs to each thread, and another thread may request
the batches.

Until the loop is found, it is noted who sets the number. If a library does so when training begins, as YOLO's does,
what the user writes above is gone by then.
"""

from __future__ import annotations

import functools
from types import FrameType
from typing import Any, Dict, Optional

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.user_code import OWN_FOLDER, is_users_file
from ._held import Held

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
        @functools.wraps(_set)
        def set_num_threads(*given: Any, **named: Any) -> None:
            _set(*given, **named)
            frame: FrameType = get_frame(1)
            if not frame.f_code.co_filename.startswith(OWN_FOLDER):
                steps.noted[NAME] = _place(frame)

        set_num_threads.__module__ = torch.__name__  # Where it is found if it is pickled.
        torch.set_num_threads = set_num_threads

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        """The place in a library that set the number last: `file` and `line`. None if the user did, or nobody."""
        return steps.noted.get(NAME)


def _place(frame: FrameType) -> Optional[Dict[str, Any]]:
    """Where a library calls; None if the user's own code does, or a module while it is imported, which is before what a
    user writes below the imports."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    outer: Optional[FrameType] = frame
    while outer is not None:
        if outer.f_code.co_filename.startswith("<frozen importlib"):
            return None
        outer = outer.f_back
    return None if is_users_file(file) else {"file": file, "line": line}


KNOB = IntraOpThreads
