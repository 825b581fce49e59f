"""A byte that the supervisor may look at while nothing is said: whether training stands still for something of the
user's own, such as an evaluation or a checkpoint.

Words on the line would cost the loop some microseconds at every end of an epoch; this costs it a store.
"""

from __future__ import annotations

import mmap
import os
from typing import Optional

PREFIX = "away-"
AWAY, HERE = b"1", b"0"


class Sign:
    """`folder`: where the supervisor looks for it; it may be out of reach, and then nobody is told."""

    def __init__(self, folder: str) -> None:
        self._byte: Optional[mmap.mmap] = None
        try:
            path = os.path.join(folder, f"{PREFIX}{os.getpid()}")
            with open(path, "w+b") as file:
                file.write(HERE)
                file.flush()
                self._byte = mmap.mmap(file.fileno(), 1)
        except (OSError, ValueError):
            pass

    def set(self, away: bool) -> None:
        if self._byte is not None:
            self._byte[0:1] = AWAY if away else HERE
