"""Windows over a number of steps, timed once the loader's queue has settled. The cost of starting an epoch is measured
separately (`epoch_overhead`)."""

from __future__ import annotations

from typing import Any, Optional

from ..loader.feed import Feed
from ..process.originals import now
from .epoch_overhead import LeadIn, epoch_overhead, queue_tolerance
from .window import FedRun

MOST_EXTENSIONS = 2
LEAST_LEAD_IN = 3
"""The least number of steps in a lead-in, unless fewer were granted."""


class SteadyRun(FedRun):
    """`lead_in` steps, then `steps` timed ones. A pause (evaluation, end of an epoch) is not timed, and another lead-in
    follows it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reused = kwargs.get("feed") is not None
        self._open = self._reused
        self._asked = False
        self._lead_in = self.grant.lead_in
        self._lead_left = self.grant.skipped + self._lead_in
        self._led = 0
        self._led_since = 0.0
        """When the first step of the lead-in was over. Workers start in it, kernels are picked and graphs compiled."""
        self._target = self.grant.steps
        self._segment_began = 0.0
        self._opened = now()
        self._queue_before = 0
        self._extensions = 0
        self._segments = 0
        self._broken = False
        self._held = False
        self._paused = False
        self._opening = 0.0
        self._led_without_pause = not self._open  # Workers that are at work say nothing of what starting them costs.
        self._first_lead: Optional[LeadIn] = None

    def step_ended(self) -> bool:
        """The user asks for the next batch. True once the window is complete."""
        self.before_step()
        self.mode.step_ended()
        if not self._timing and self.steps >= self._target:
            self._finish()
            return True
        if not self._asked:
            return False
        self._asked = False
        if not self._timing:
            self.lead_in_steps += 1
            self._led += 1
            self._lead_left -= 1
            self._cut_lead_in()
            if self.overdue():
                if self.steps:
                    self._finish()
                    return True
                self._lead_left = 0
            return False
        self.steps += 1
        late = self.late(self.seconds + now() - self._segment_began) or self.overdue()
        if self.steps < self._target and not late:
            return False
        ended = self.clock()
        change = self.feed.ready() - self._queue_before
        settled = abs(change) <= queue_tolerance(self.steps)
        if not settled and self._extensions < MOST_EXTENSIONS and not self._broken and not late:
            self._extensions += 1
            self._target += self.grant.steps
            return False
        self.seconds += ended - self._segment_began
        self.mode.suspend()
        self.around.end()  # Whoever times phases must not time the reading of counters.
        self.queue_change = 0 if self._broken else change
        self._finish()
        return True

    def _cut_lead_in(self) -> None:
        """End a lead-in that takes far longer than planned, once each worker has given a batch. Steps are then so slow
        that the timed part says enough, and the batches in the queue are corrected for, as always."""
        if self._led == 1:
            self._led_since = now()
            return
        most = self.grant.most_lead_in_seconds
        enough = self._led >= max(LEAST_LEAD_IN, self.feed.workers)
        if enough and self._lead_left > 0 and 0 < most < now() - self._led_since:
            self._lead_left = 0
            self._led_without_pause = False  # Too few waits to tell what starting an epoch costs.

    def _finish(self) -> None:
        self._timing = False
        lead = self._first_lead
        if lead is not None and (self._segments == 1 or lead.waits):
            self.epoch_overhead_seconds = epoch_overhead(
                lead, steps=self.steps, seconds=self.seconds, waited=self.wait_seconds, queue_change=self.queue_change
            )

    def take(self) -> Any:
        """The next batch for the user."""
        if not self._open:
            if not self.feed.persistent:
                self._opened = self.clock()  # Starting workers is what starting an epoch costs.
            self._guard(self.feed.open_warm)
            if self.feed.persistent:
                self._opened = self.clock()
            self._guard(self.feed.restart)
            self._opening = now() - self._opened
            self._next = None
            self._led_waits.clear()
            self._led_without_pause = True
            self._open = True
        if not self._timing and self._lead_left <= 0:
            self._begin_timing()
        batch = self._fetch()
        self._asked = True
        return batch

    def _begin_timing(self) -> None:
        self.check_effect()
        self.around.begin()
        self.mode.resume()
        self._segment_began = self.clock()
        if self._segments == 0:
            self.lead_in_seconds = self._segment_began - self._opened
            if self._led_without_pause:
                self._first_lead = LeadIn(
                    self.lead_in_seconds, self._opening, tuple(self._led_waits), self.feed.workers
                )
        self._segments += 1
        self._queue_before = self.feed.ready()
        self._timing = True

    def pause(self, at: Optional[float] = None, *, epoch_over: bool = True) -> None:
        """The user's loop stops training for a while (since `at`): keep what was timed, then lead in again.

        In the middle of an epoch the loader goes on loading, as the user's own would. The batches that are ready after
        the pause are served in the lead-in.
        """
        if self._timing:
            self._stop_timing(self.clock() if at is None else at)
        elif self._led + self._asked and not self._held:
            # The lead-in outlasts what the user runs at a stretch: half of that has to do, or nothing is ever timed.
            # Of the first stretch, only the end is known: the window began somewhere within it.
            least = 0 if self._paused else 1
            self._lead_in = min(self._lead_in, max(least, (self._led + self._asked) // 2))
        self._led_without_pause = False
        self._paused = True
        if epoch_over and self._open and not self.feed.persistent:
            self.feed.close()
            self._open = False
        self._lead_left = self._lead_in
        self._led = 0
        self._asked = False
        self._held = False

    @property
    def starts_loading(self) -> bool:
        """Whether it started what makes batches: workers, or an iterable dataset."""
        return (self.feed.workers > 0 or self.feed.iterable) and not self._reused

    def let_go(self, *, goes_on: bool) -> Optional[Feed]:
        if not (goes_on and self._open):
            return super().let_go(goes_on=goes_on)
        self.revert()
        return self.feed  # type: ignore[no-any-return]

    def hold(self) -> None:
        """The batch that is now requested is served but not timed, because nothing will show when its step ends."""
        if self._timing:
            self._stop_timing(self.clock())
            self._lead_left = max(1, self._lead_in)
            self._held = True

    def _stop_timing(self, at: float) -> None:
        self.seconds += at - self._segment_began
        self.mode.interrupted(at)
        self.mode.suspend()
        self.around.end()
        self.steps += self._asked
        self._timing = False
        self._broken = True

    def epoch_over(self) -> None:
        """The user's epoch is over: persistent workers begin their next one, unless they just go on."""
        if self.feed.persistent and not self.feed.endless:
            self._open = False


class JointRun(SteadyRun):
    """A steady run of several ranks: it ends after exactly as many batches as were granted, on every rank.

    If one rank went on for longer, because its queue had changed or only it evaluated, it would wait in a collective
    for the other ranks, which have no such step. So a pause shortens the timed part, and nothing lengthens the window.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left = self.grant.all_steps

    def take(self) -> Any:
        batch = super().take()
        self.left -= 1
        return batch

    def step_ended(self) -> bool:
        self.before_step()
        self.mode.step_ended()
        if self._asked:
            self._asked = False
            if self._timing:
                self.steps += 1
            else:
                self.lead_in_steps += 1
                self._led += 1
                self._lead_left -= 1
        if self.left > 0:
            return False
        if self._timing:
            change = self.feed.ready() - self._queue_before
            self._stop_timing(self.clock())
            self.queue_change = 0 if self._segments > 1 else change
        if self.steps:
            self._finish()
        return True

    def pause(self, at: Optional[float] = None, *, epoch_over: bool = True) -> None:
        super().pause(at, epoch_over=epoch_over)
        self._lead_left = min(self._lead_left, self.left // 2)
