"""Warms up the processes of an examination, each one once and only for a limited part of its time, and lets their
windows begin at different steps."""

from __future__ import annotations

import random
from collections.abc import Callable

from bottleneck_doctor.measure import burn_in, schedule
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Plan, probe
from bottleneck_doctor.measure.starter import Live
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.runtime.wire import messages

BURN_IN_SHARE = 0.1
"""Largest part of a session's time that warming up may take."""


class Warming:
    """Warms processes up. `plan`: returns the examination's current plan. `now`: seconds; only differences matter."""

    def __init__(
        self,
        measured: Measurements,
        prober: Prober,
        plan: Callable[[], Plan],
        now: Callable[[], float],
        generator: random.Random,
    ) -> None:
        self._measured = measured
        self._prober = prober
        self._plan = plan
        self._now = now
        self._generator = generator
        self._here = measured.found
        """The loop as the current process found it."""
        self._warm = False
        """Whether the current process was warmed up, as far as possible."""
        self._briefly = False

    def stand_at(self, found: messages.Found, *, briefly: bool) -> None:
        """A new process stands at the loop. `briefly`: it has no steps for more than one window that warms it up."""
        self._here, self._warm, self._briefly = found, False, briefly
        self._prober.skips = self._offset()

    def _offset(self) -> int:
        """By how many steps the windows of the current process begin later: a random part of a window.

        With fixed seeds all processes take the same batches. If a setting met the same dear ones in each of them, it
        would look slower, and more processes would not show it.
        """
        costs = self._prober.costs
        regular = costs.regular or schedule.regular(self._here.step_seconds)
        if regular or costs.epochs or costs.most_steps is not None:
            return 0
        steps = costs.size(probe(BURN_IN, {}), self._plan().window_seconds).steps
        return self._generator.randrange(0, steps + 1, costs.shape.period)

    def is_dear(self) -> bool:
        """Whether even one warm-up window would take more time than warming up may. With steps that long, the steps in
        which the loop was found have warmed the process up."""
        seconds = self._prober.costs.measuring(probe(BURN_IN, {}), self._plan().window_seconds / 2)
        seen = sum(self._here.step_seconds)
        return seen >= burn_in.WARMED_UP_SECONDS and seconds > BURN_IN_SHARE * self._plan().session_seconds

    def warm_up(self, live: Live) -> None:
        """Run baseline windows that are thrown away until the speed no longer changes. Raises `SessionOver` and
        `OutOfTime`."""
        explained = [
            window
            for window in self._measured.windows
            if window.session == live.session.number and window.mode not in ev.COUNTED and not window.setting
        ]
        if self._warm or not burn_in.needed(self._here, self._prober.costs, explained) or self.is_dear():
            return
        # If it is not level by now, it is as warm as it gets: no further warm-up follows.
        self._warm = burn_in.burn_in(
            lambda: self._prober.measure(live.session, probe(BURN_IN, {}), seconds=self._plan().window_seconds / 2),
            most=1 if self._briefly else burn_in.most_windows(self._prober.costs),
            last=burn_in.shown_speed(explained[-1]) if explained else None,
            most_seconds=BURN_IN_SHARE * self._plan().session_seconds,
            now=self._now,
        )
