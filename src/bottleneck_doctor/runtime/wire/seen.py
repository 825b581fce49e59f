"""What was seen so far, in a file that the supervisor can read: it may have to end a process whose loop was never
found, and such a process has not connected yet."""

from __future__ import annotations

import mmap
import os
import struct
from typing import NamedTuple, Optional

PREFIX = "seen-"
_SHAPE = struct.Struct("<4Q")


class Counts(NamedTuple):
    """`batches` taken with gradients on, and `evaluated` with gradients off; passes and steps as in `Ended`."""

    batches: int = 0
    evaluated: int = 0
    backwards: int = 0
    optimizer_steps: int = 0


class Seen:
    """`folder`: where the supervisor reads it; if it is out of reach, nothing is written."""

    def __init__(self, folder: str) -> None:
        self._bytes: Optional[mmap.mmap] = None
        try:
            with open(os.path.join(folder, f"{PREFIX}{os.getpid()}"), "w+b") as file:
                file.write(_SHAPE.pack(*Counts()))
                file.flush()
                self._bytes = mmap.mmap(file.fileno(), _SHAPE.size)
        except (OSError, ValueError):
            pass

    def set(self, counts: Counts) -> None:
        if self._bytes is not None:
            self._bytes[0 : _SHAPE.size] = _SHAPE.pack(*counts)


def read(told: bytes) -> Optional[Counts]:
    """The content of such a file; None if it is none."""
    return Counts(*_SHAPE.unpack(told)) if len(told) == _SHAPE.size else None
