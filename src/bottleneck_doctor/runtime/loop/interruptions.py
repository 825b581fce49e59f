"""Evaluations in the midst of an epoch, over the whole life of the process: how many batches lie between two of them,
and how long they take.

The server reports when another loader is used or the model is put into evaluation mode, and when the loop goes on. If a
backward pass was made by then, the program trained meanwhile, as on one of two data sets, and nothing was evaluated.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

MOST_KEPT = 64


class Interruptions:
    def __init__(self) -> None:
        self.seen = 0
        self.by_mode = 0
        """How many of them are only known by the model's mode."""
        self._first = 0
        self._last = 0
        self._seconds: List[float] = []
        """Of the latest."""
        self._backwards: Optional[int] = None

    def began(self, backwards: int) -> None:
        """Another loader is asked for a batch, or the model evaluates. `backwards`: backward passes made so far."""
        if self._backwards is None:
            self._backwards = backwards

    def ended(self, seconds: float, position: int, backwards: int, *, mid_epoch: bool, by_mode: bool = False) -> bool:
        """The loop goes on with its batches (steps without a loader), of which there were `position` so far.
        `mid_epoch`: with those of the same epoch. `by_mode`: no other loader was asked. Returns whether it trained
        meanwhile."""
        before, self._backwards = self._backwards, None
        trained = before != backwards
        if trained or not mid_epoch:
            return trained
        self._first = position if not self.seen else self._first
        self._last = position
        self.seen += 1
        self.by_mode += by_mode
        self._seconds.append(seconds)
        del self._seconds[:-MOST_KEPT]
        return False

    def forget(self) -> None:
        """What began was no evaluation."""
        self._backwards = None

    def told(self) -> Dict[str, Any]:
        """As JSON values. `batches`: from the first that was seen to the last."""
        return {
            "seen": self.seen,
            "by_mode": self.by_mode,
            "batches": self._last - self._first,
            "seconds": list(self._seconds),
        }
