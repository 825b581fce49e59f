"""Calls that take a value out of a tensor, by the user's line. On a device, each of them makes the host wait."""

from __future__ import annotations

import functools
import os
import threading
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ..process.originals import get_frame, now
from ..process.patches import Patches
from ..process.user_code import is_users_file

_NAMES = {
    "item": ".item()",
    "cpu": ".cpu()",
    "numpy": ".numpy()",
    "tolist": ".tolist()",
    "__bool__": "bool()",
    "__float__": "float()",
    "__int__": "int()",
    "__repr__": "print",
    "__format__": "print",
}


class TakenValues:
    """Counts while `counting()` says so; only the outermost of nested calls."""

    def __init__(self, counting: Callable[[], bool]) -> None:
        self._counting = counting
        self._thread = threading.get_ident()
        self._inside = False
        self._calls: Dict[Tuple[str, CodeType, int, str], List[float]] = {}
        self._users: Dict[CodeType, bool] = {}

    def apply(self, patches: Patches) -> None:
        for name, shown in _NAMES.items():
            patches.put(torch.Tensor, name, functools.partial(self._timed, shown))

    def _timed(self, shown: str, original: Any) -> Any:
        def take(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self._counting() or threading.get_ident() != self._thread:
                return original(tensor, *args, **kwargs)
            self._inside = True
            begun = now()
            try:
                return original(tensor, *args, **kwargs)
            finally:
                self.note(shown, now() - begun, get_frame(1))
                self._inside = False

        return take

    def note(self, shown: str, seconds: float, frame: Optional[FrameType]) -> None:
        """A call named `shown` from `frame` took so long. It is not noted if no line of the user's called it."""
        taker = frame
        while frame is not None:
            code = frame.f_code
            users = self._users.get(code)
            if users is None:
                users = self._users[code] = is_users_file(code.co_filename)
            if users:
                library = "" if frame is taker else _library(taker)
                call = self._calls.setdefault((shown, code, frame.f_lineno, library), [0, 0.0])
                call[0] += 1
                call[1] += seconds
                return
            frame = frame.f_back

    def detail(self) -> List[Dict[str, Any]]:
        return [
            {
                "name": shown,
                "file": os.path.abspath(code.co_filename),
                "line": line,
                "library": library,
                "count": int(count),
                "seconds": seconds,
            }
            for (shown, code, line, library), (count, seconds) in self._calls.items()
        ]


def _library(frame: Optional[FrameType]) -> str:
    """The package whose code runs in a frame."""
    name = frame.f_globals.get("__name__") if frame is not None else None
    return name.partition(".")[0] if type(name) is str else ""
