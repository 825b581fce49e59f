"""How long Python's garbage collector runs between epochs, and which line asked for it."""

from __future__ import annotations

import gc
from types import CodeType
from typing import Any, Dict, Optional, Set, Tuple

from ..process.originals import get_frame, now

MOST_CALLERS = 16
"""At most this many lines are kept apart; a program collects in one or two."""
ASKING: Set[CodeType] = set()
"""The code of functions that stand in the place of `gc.collect`."""
Caller = Tuple[str, int]
"""File and line of a call of `gc.collect`; "" and 0 where the collector started by itself."""


class Collecting:
    """Watches the collector from `begin` to `end`, and is none of its callbacks otherwise. `seconds`: by caller."""

    def __init__(self) -> None:
        self.seconds: Dict[Caller, float] = {}
        self._seen: Dict[Caller, float] = {}
        """The same since `begin`."""
        self._began: Optional[float] = None
        self._caller: Caller = ("", 0)

    def begin(self) -> None:
        self._began = None
        self._seen = {}
        if self._told not in gc.callbacks:
            gc.callbacks.append(self._told)

    def end(self, *, counts: bool) -> float:
        """Returns how many seconds the collector ran since `begin`. `counts`: whether they are kept in `seconds`."""
        if self._told in gc.callbacks:
            gc.callbacks.remove(self._told)
        seen, self._seen = self._seen, {}
        for caller, seconds in seen.items() if counts else ():
            _add(self.seconds, caller, seconds)
        return sum(seen.values())

    def _told(self, moment: str, info: Dict[str, int]) -> None:
        if moment == "start":
            self._began = now()
            try:
                self._caller = _caller(get_frame(1))
            except ValueError:  # A thread of torch's that runs no Python can start it, too.
                self._caller = ("", 0)
        elif self._began is not None:
            # The last epoch has no `end`: what is kept of the time after it must not grow.
            _add(self._seen, self._caller, now() - self._began)
            self._began = None


def _add(seconds: Dict[Caller, float], caller: Caller, more: float) -> None:
    where = caller if caller in seconds or len(seconds) < MOST_CALLERS else ("", 0)
    seconds[where] = seconds.get(where, 0.0) + more


def _caller(frame: Any) -> Caller:
    """Where `gc.collect` was called, if the collector runs in the `frame` of what stands in its place."""
    asked = frame.f_code in ASKING
    while frame is not None and frame.f_code in ASKING:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if asked and frame is not None else ("", 0)
