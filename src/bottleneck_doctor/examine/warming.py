"""Warming the processes of an examination up: each once, and for no larger a part of its time than that may take."""

from __future__ import annotations

from collections.abc import Callable

from bottleneck_doctor.measure import burn_in
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Plan, probe
from bottleneck_doctor.measure.starter import Live
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.runtime.wire import messages

BURN_IN_SHARE = 0.1
"""Part of a session's time that warming up may take."""


class Warming:
    """`plan`: the plan of the examination as it is now. `now`: seconds, of which only differences mean something."""

    def __init__(
        self, measured: Measurements, prober: Prober, plan: Callable[[], Plan], now: Callable[[], float]
    ) -> None:
        self._measured = measured
        self._prober = prober
        self._plan = plan
        self._now = now
        self._here = measured.found
        """The loop as the process that runs found it."""
        self._warm = False
        """Whether that process was warmed up, as far as that goes."""

    def stand_at(self, found: messages.Found) -> None:
        """Another process stands at the loop."""
        self._here, self._warm = found, False

    def is_dear(self) -> bool:
        """Whether one window to warm up would take more than warming up may. Steps that long have warmed up within
        those in which the loop was found."""
        seconds = self._prober.costs.measuring(probe(BURN_IN, {}), self._plan().window_seconds / 2)
        seen = sum(self._here.step_seconds)
        return seen >= burn_in.WARMED_UP_SECONDS and seconds > BURN_IN_SHARE * self._plan().session_seconds

    def warm_up(self, live: Live) -> None:
        """Baseline windows, thrown away, until the speed is level. Raises `SessionOver` and `OutOfTime`."""
        explained = [
            window
            for window in self._measured.windows
            if window.session == live.session.number and window.mode not in ev.COUNTED and not window.setting
        ]
        if self._warm or not burn_in.needed(self._here, self._prober.costs, explained) or self.is_dear():
            return
        # Or as warm as it gets: nobody warms this process up again.
        self._warm = burn_in.burn_in(
            lambda: self._prober.measure(live.session, probe(BURN_IN, {}), seconds=self._plan().window_seconds / 2),
            last=burn_in.shown_speed(explained[-1]) if explained else None,
            most_seconds=BURN_IN_SHARE * self._plan().session_seconds,
            now=self._now,
        )
