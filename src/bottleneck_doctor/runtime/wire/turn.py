"""Whose turn it is to train until its loop is found, where several processes are started at once.

They share the processors. If their threads wait for one another, the first steps of two processes at once can take five
times as long as one after the other. So only one of them trains at a time. The turn is a lock on a file, which the
kernel gives back if its process dies.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

fcntl: Any
try:
    import fcntl
except ImportError:
    fcntl = None

NAME = "turn"
"""Its key in the invitation."""
LONGEST = 30.0
"""Seconds to wait for the turn at most: the process that has it may never come to its loop, or wait for this one."""
_LOOKS_EVERY = 0.01


class Turn:
    """`file`: what all of them lock; empty where this process was started alone."""

    def __init__(self, file: str, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._file = file if fcntl is not None else ""
        self._now = now
        self._sleep = sleep
        self._descriptor: Optional[int] = None

    @property
    def is_to_come(self) -> bool:
        """Whether this process has not had its turn."""
        return bool(self._file)

    def take(self) -> float:
        """Wait until no other process has the turn, and take it. Returns for how many seconds it waited: none if this
        process had its turn."""
        if not self._file:
            return 0.0
        file, self._file = self._file, ""
        begun = self._now()
        try:
            self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            while not self._locks(self._descriptor) and self._now() < begun + LONGEST:
                self._sleep(_LOOKS_EVERY)
        except OSError:  # It is out of reach, or its file system has no locks: then there are no turns.
            self.leave()
        return self._now() - begun

    def _locks(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def give_back(self) -> None:
        """Let the next process train. Does nothing if this process has no turn."""
        self._file = ""
        if self._descriptor is not None:
            # A forked worker may hold the descriptor too, and closing it here would not be enough.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.leave()

    def leave(self) -> None:
        """Have nothing to do with it any more, in a process that was forked from one that may have the turn."""
        self._file = ""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
