"""Scripts that end by themselves after a few seconds: how long a process trains, and what fits into that. Pure.

As long as it is not known, windows are as long as the budget allows. A process that ends in the middle of them shows
one setting or none. Once a process has come to its end, windows are so short that another one holds them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from bottleneck_doctor.measure.schedule import BASELINE_EVERY, Plan

USED = 0.75
"""Part of a process' life that is planned for windows. The rest is for warming up, and for settings that are slower."""
WITH_LEAD_IN = 1.3
"""How many times as long as its timed part a window is, about."""
LEAST_WINDOW_SECONDS = 0.2
"""The timed part of a window is never planned to be shorter. A process that has no time for all settings then measures
those that were measured least."""
KEPT_FREE = 0.05
"""Part of a life at whose end no window is begun."""


class Lifetime:
    """How long processes train from the moment at which they stand at their loop. `now`: seconds; only differences
    matter."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.seconds = math.inf
        """The shortest life so far of a process that came to its end."""
        self._now = now
        self._stood = now()

    def begins(self) -> None:
        """A process stands at its loop."""
        self._stood = self._now()

    def ended(self) -> None:
        """The script came to its end."""
        self.seconds = min(self.seconds, self._now() - self._stood)

    def left(self) -> float:
        """Seconds that the process which stands has for windows."""
        return self._stood + (1 - KEPT_FREE) * self.seconds - self._now()

    def planned(self, plan: Plan, settings: int, setup: float, left: float, most: int) -> Plan:
        """The plan for windows of so many settings, all of which fit into the life of a process, with the baseline
        between them. There may be as many processes as `left` seconds hold, but no more than `most`; starting one takes
        `setup`."""
        windows = settings + settings / BASELINE_EVERY + 1
        fits = max(LEAST_WINDOW_SECONDS, USED * self.seconds / (WITH_LEAD_IN * windows))
        if fits >= plan.window_seconds:
            return plan
        sessions = min(most, int(left / (setup + self.seconds)))
        return replace(
            plan,
            sessions=max(plan.sessions, sessions),
            session_seconds=min(plan.session_seconds, self.seconds),
            window_seconds=fits,
        )
