"""Evaluations in the midst of an epoch, over the whole life of the process: how many batches lie between two of them,
and how long they take.

The server reports when another loader is used and when the loop goes on. If a backward pass was made by then, the other
loader's batch was trained on, as one of two data sets, and nothing was evaluated.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

MOST_KEPT = 64


class Interruptions:
    def __init__(self) -> None:
        self.seen = 0
        self._first = 0
        self._last = 0
        self._seconds: List[float] = []
        """Of the latest."""
        self._backwards: Optional[int] = None

    def began(self, backwards: int) -> None:
        """Another loader is asked for a batch. `backwards`: backward passes made so far."""
        if self._backwards is None:
            self._backwards = backwards

    def ended(self, seconds: float, position: int, backwards: int, *, mid_epoch: bool) -> None:
        """The loop asks for its next batch, of which there were `position` so far. `mid_epoch`: of the same epoch."""
        before, self._backwards = self._backwards, None
        if before != backwards or not mid_epoch:
            return
        self._first = position if not self.seen else self._first
        self._last = position
        self.seen += 1
        self._seconds.append(seconds)
        del self._seconds[:-MOST_KEPT]

    def told(self) -> Dict[str, Any]:
        """As JSON values. `batches`: from the first that was seen to the last."""
        return {"seen": self.seen, "batches": self._last - self._first, "seconds": list(self._seconds)}
