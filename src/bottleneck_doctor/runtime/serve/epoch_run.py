"""Windows over whole epochs, from the making of the iterator to the end of its workers: exact if epochs are short."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ..process.originals import now
from .window import FedRun


class EpochRun(FedRun):
    """`lead_in` whole epochs, then `epochs` timed ones, each with its own start and end of the loader."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lead_left = self.grant.lead_in
        self._began: Optional[float] = None
        self._pauses: List[Tuple[float, float]] = []
        self._steps_in_epoch = 0

    @property
    def running(self) -> bool:
        """Whether an epoch of this window is under way."""
        return self._began is not None

    def epochs_left(self) -> int:
        """Epochs that this window still takes, including one that has begun."""
        return max(0, self._lead_left) + self.grant.epochs - self.epochs

    def begin_epoch(self) -> None:
        """The user starts an epoch."""
        self._synchronise()
        self._pauses.clear()
        self._steps_in_epoch = 0
        self._timing = self._lead_left <= 0
        if self._timing:
            self.around.begin()
        self._began = now()
        if self._timing:
            self.mode.resume()
        self._guard(self.feed.open)
        self._next = None

    def take(self) -> Any:
        self.before_step()
        if self._steps_in_epoch:
            self.mode.step_ended()
        batch = self._fetch()
        self._steps_in_epoch += 1
        if self._steps_in_epoch == 1:
            self.context.batch = batch
        elif not self._checked:
            self.check_effect()
        return batch

    def pause(self, began: float, ended: float) -> None:
        self._pauses.append((began, ended))
        if self._timing:
            self.mode.suspend()
            self.mode.resume()

    def lengthen(self, seconds: float) -> None:
        """Add `seconds` to the epoch, for the step on its last batch, which comes after its end."""
        if self._began is not None:
            self._began -= seconds

    def end_epoch(self, at: Optional[float] = None) -> bool:
        """The epoch is over (its workers too), since `at` where the user went on without asking for more. True once the
        window is complete."""
        if self._began is None:
            return False
        self.before_step()
        if not self._checked:
            self.check_effect()
        # What a device still has to do by then, nobody has seen.
        end = self.clock() if at is None or not self.context.device.startswith("cpu") else at
        seconds = end - self._began - sum(ended - began for began, ended in self._pauses if began < end)
        self._began = None
        if self._timing:
            self.mode.suspend()
            self.around.end()
            self.seconds += seconds
            self.steps += self._steps_in_epoch
            self.epochs += 1
            self._timing = False
            late = not self.grant.together and 0 < self.grant.most_seconds < self.seconds
            return late or self.epochs >= self.grant.epochs
        self._lead_left -= 1
        self.lead_in_steps += self._steps_in_epoch
        self.lead_in_seconds += seconds
        return False
