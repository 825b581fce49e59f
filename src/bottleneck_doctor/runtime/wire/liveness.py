"""What the supervisor can read without a message: how many steps were made, whether training has paused for work of the
user's own, such as an evaluation or a checkpoint, and whether all of it is done.

With this it distinguishes slow steps and evaluations from a hang, and from what comes after training. A message would
cost some microseconds in each step; this costs one write to memory.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import NamedTuple, Optional

PREFIX = "alive-"
_SHAPE = struct.Struct("=Q??")
_AWAY, _LAST = 8, 9
"""The offsets of two bytes after the steps: whether training has paused, and whether its last step has begun."""


class Shown(NamedTuple):
    """`steps` begun since the loop was found; `away`: whether training has paused for work of the user's own; `last`:
    whether the last step has begun that the program says it will make."""

    steps: int = 0
    away: bool = False
    last: bool = False


class Liveness:
    """`folder`: where the supervisor reads it; if it is out of reach, nothing is written. `ends`: the number of the
    program's last step; None if it does not say."""

    def __init__(self, folder: str, ends: Optional[int] = None) -> None:
        self._ends = ends
        self._bytes: Optional[mmap.mmap] = None
        self._steps: Optional[memoryview] = None
        try:
            with open(os.path.join(folder, f"{PREFIX}{os.getpid()}"), "w+b") as file:
                file.write(_SHAPE.pack(*Shown()))
                file.flush()
                self._bytes = mmap.mmap(file.fileno(), _SHAPE.size)
            self._steps = memoryview(self._bytes)[:_AWAY].cast("Q")
        except (OSError, ValueError):
            pass

    def step(self) -> None:
        """Training goes on: another step begins."""
        if self._steps is not None and self._bytes is not None:
            self._steps[0] += 1
            self._bytes[_AWAY] = False

    def reached(self, number: int) -> None:
        """The step of this number has begun."""
        if self._ends is not None and number >= self._ends and self._bytes is not None:
            self._bytes[_LAST] = number == self._ends  # Beyond that, it is not known where training ends.

    def away(self) -> None:
        """Training pauses for work of the user's own, until the next step."""
        if self._bytes is not None:
            self._bytes[_AWAY] = True


def read(shown: bytes) -> Optional[Shown]:
    """The content of such a file; None if it is none."""
    return Shown(*_SHAPE.unpack(shown)) if len(shown) == _SHAPE.size else None
