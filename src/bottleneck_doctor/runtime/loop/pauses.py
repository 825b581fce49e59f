"""The time between an epoch's last step and the next epoch's first batch, over the whole life of the process.

The server reports when epochs end and begin and when other loaders are used; totals in seconds come out. Only pauses
under the user's own setting count, and the first batch of an epoch counts only if no window began with it.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ..files.save_hooks import Saving
from .collecting import Collecting

Described = Tuple[int, str, int]
"""What is told of another loader: its workers, and file and line where it was made; "" and 0 where nobody knows."""


class EpochPauses:
    """Totals. `first_batches` counts the pauses in which the first batch could be timed."""

    def __init__(self) -> None:
        self.seen = 0
        self.evaluation = 0.0
        self.of_training = 0.0
        """Seconds of evaluation that went through the training data once more."""
        self.waiting: Dict[Described, float] = {}
        """Seconds of evaluation in which each other loader was waited for."""
        self.saving = 0.0
        self.rest = 0.0
        self.in_mode = 0.0
        """The part of the rest in which the model was in evaluation mode."""
        self.first_batch = 0.0
        self.first_batches = 0
        self.collecting = Collecting()
        """Garbage collection in the pauses, as a part of the rest or of evaluation."""
        self._since: Optional[float] = None
        self._loader_ending = 0.0
        self._saved_before = 0.0
        self._foreign_from: Optional[float] = None
        self._foreign_until = 0.0
        self._foreign_is_training = False
        """Whether the other loader that was used last goes through the training data."""
        self._of_training = 0.0
        self._waiting: Dict[Described, float] = {}
        self._mode_from: Optional[float] = None
        self._in_mode = 0.0
        self._asked: Optional[float] = None
        """Since when another loader is waited for."""

    def began(self, requested: float, ended: float, counts: bool) -> None:
        """An epoch is over: the loop requested one more batch at `requested`, and the loader ended at `ended`."""
        self._since = ended if counts else None
        self.collecting.begin()
        self._loader_ending = ended - requested
        self._saved_before = Saving.seconds
        self._foreign_from = None
        self._of_training = 0.0
        self._waiting = {}
        self._in_mode = 0.0
        self._asked = None  # What was started before and gave nothing is not waited for.

    def evaluation_mode(self, at: float, *, on: bool) -> None:
        """The model was put into evaluation mode (`on`), or trains again."""
        if self._mode_from is not None:
            self._in_mode += at - self._mode_from
        self._mode_from = at if on else None

    def asked(self, at: float) -> None:
        """Another loader is being started, or is asked for a batch."""
        if self._asked is None:
            self._asked = at

    def foreign(self, at: float, *, training: bool, begins: bool = False, loader: Described = (0, "", 0)) -> None:
        """Another loader was started (`begins`), or gave a batch. `training`: it goes through the training data."""
        if not begins and self._asked is not None:
            self._waiting[loader] = self._waiting.get(loader, 0.0) + at - self._asked
            self._asked = None
        if self._foreign_from is None:
            self._foreign_from = at
        # What lies before a loader's start is work on what the one before it gave.
        elif self._foreign_is_training if begins else training:
            self._of_training += at - self._foreign_until
        self._foreign_until = at
        self._foreign_is_training = training

    def ended(self, requested: float, delivered: float, timed: bool, trained: float) -> float:
        """The next epoch's first batch was requested and delivered. `timed`: in the window of the last epoch's end.

        `trained`: when the last optimizer step was done; loops that fetch ahead end the loader before it. Returns how
        many seconds the collector ran in the pause, under whatever setting.
        """
        since, self._since = self._since, None
        collected = self.collecting.end(counts=since is not None)
        if since is None:
            return collected
        since = max(since, trained)
        saving = Saving.seconds - self._saved_before
        evaluation = 0.0 if self._foreign_from is None else self._foreign_until - self._foreign_from
        self.seen += 1
        self.evaluation += evaluation
        self.of_training += self._of_training
        for loader, waited in self._waiting.items():
            self.waiting[loader] = self.waiting.get(loader, 0.0) + waited
        self.saving += saving
        rest = max(0.0, requested - since - evaluation - saving)
        self.rest += rest
        if self._mode_from is not None:
            self._in_mode += requested - max(since, self._mode_from)
            self._mode_from = None
        self.in_mode += min(rest, max(0.0, self._in_mode - evaluation))
        if timed:
            self.first_batch += self._loader_ending + delivered - requested
            self.first_batches += 1
        return collected

    def totals(self) -> Dict[str, Any]:
        """As JSON values."""
        return {
            "seen": self.seen,
            "evaluation": self.evaluation,
            "of_training": self.of_training,
            "waiting": [
                {"seconds": seconds, "workers": workers, "file": file, "line": line}
                for (workers, file, line), seconds in self.waiting.items()
            ],
            "saving": self.saving,
            "rest": self.rest,
            "in_mode": self.in_mode,
            "first_batch": self.first_batch,
            "first_batches": self.first_batches,
            "collecting": [
                {"seconds": seconds, "file": file, "line": line}
                for (file, line), seconds in self.collecting.seconds.items()
            ],
        }
