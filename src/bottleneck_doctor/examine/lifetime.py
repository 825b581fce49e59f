"""Scripts that end, or pause for minutes, after seconds: how long a process trains, and what fits into that. Pure.

As long as it is not known, windows are as long as the budget allows. A process that ends in the middle of them shows
one setting or none. Once a process has come to its end, windows are so short that another one holds them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure import steps_left
from bottleneck_doctor.measure.costs import COMPARED
from bottleneck_doctor.measure.schedule import (
    BASELINE_EVERY,
    LEAST_LONG_STEPS,
    LEAST_SESSIONS,
    LEAST_STEPS,
    PLAIN_LEAD_IN,
    Plan,
)

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
        self.lives = 0
        """How many processes came to their end."""
        self._steps = math.inf
        """Steps of the shortest such life, as far as that is known."""
        self._short = False
        """Whether windows were made shorter, to fit into a life."""
        self._now = now
        self.begins()

    def begins(self, made: Callable[[], int] = lambda: 0) -> None:
        """A process stands at its loop. `made`: how many steps it has made since."""
        self._stood, self._made = self._now(), made

    def ended(self, still: float = 0.0, steps: int | None = None) -> None:
        """The script came to its end, or made no step for the last `still` seconds. `steps`: that it made meanwhile;
        None if that is not known."""
        self._steps = min(self._steps, math.inf if steps is None else steps)
        self.seconds = min(self.seconds, max(0.0, self._now() - self._stood - still))
        self.lives += 1

    def left(self, step: float) -> float:
        """Seconds that the process which stands has for windows, if a step takes so many seconds."""
        seconds = self._stood + (1 - KEPT_FREE) * self.seconds - self._now()
        return seconds if math.isinf(self._steps) else min(seconds, (self._steps - self._made()) * step)

    def holds(self, steps: int) -> bool:
        """Whether the process which stands makes so many steps more."""
        return self._made() + steps <= self._steps

    def ends_soon(self, selection: Selection) -> bool:
        """Whether processes live for so short that settings which were not measured wait for the next ones. Some may
        be so slow that no process lives long enough for them, so the waiting ends."""
        return 0 < self.lives < 2 * selection.size() and not selection.explored()

    def step_seconds(self, windows: Sequence[Window], step: float) -> float:
        """Seconds of a life that a step takes as written: in windows of whole epochs, with what lies between them, such
        as evaluations. `step`: where no such window shows it."""
        known = [
            (each.ended - each.started) / (each.steps + each.lead_in_steps)
            for each in windows
            if each.whole_epochs and each.steps and not each.setting and each.ended is not None
        ]
        return max(step, median(known)) if known else step

    def steps_compared(self, step: float, settings: int = 1) -> int:
        """Timed steps of a window of which a process holds three, if a step takes so many seconds. So many it takes to
        compare a setting with the training as written. Two at least. The same for more of so many `settings`, as long
        as a few steps are left to each: a start costs more than what a few more steps tell."""
        steps, windows = self.steps(step), COMPARED
        while windows < 2 * settings and steps_left.timed(steps, windows + 2) > LEAST_LONG_STEPS:
            windows += 2
        return steps_left.timed(steps, windows)

    def steps(self, step: float) -> float:
        """For how many steps a process lives, if one takes so many seconds. It may be fewer than its seconds say: the
        first batch of an epoch is waited for, too."""
        return min((1 - KEPT_FREE) * self._steps, (1 - KEPT_FREE) * self.seconds / max(1e-9, step))

    def starts(self, seconds: float) -> int:
        """How many processes it takes to hold so many seconds of windows; one if they don't end by themselves."""
        held = (1 - KEPT_FREE) * self.seconds
        return 1 if seconds <= held else math.ceil(seconds / max(1e-9, held))

    def planned(self, plan: Plan, settings: int, step: float, setup: float, left: float, most: int) -> Plan:
        """The plan for windows of so many settings, all of which fit into the life of a process, with the baseline
        between them. There may be as many processes as `left` seconds hold, but no more than `most`, unless a process
        holds so few settings that it takes more of them to compare each in as many as a claim needs. `step`: seconds of
        one, `setup`: those that a start takes."""
        if not self.lives:
            return plan
        windows = settings + settings / BASELINE_EVERY + 1
        fits = max(LEAST_WINDOW_SECONDS, USED * self.seconds / (WITH_LEAD_IN * windows))
        shortest = max(fits, (PLAIN_LEAD_IN + min(LEAST_STEPS, self.steps_compared(step, settings))) * step)
        held = max(1, int((self.seconds / shortest - 1) / (1 + 1 / BASELINE_EVERY)))
        # Of a plan for such lives, only how many processes there are changes, as more time is asked for.
        if fits >= plan.window_seconds and held >= settings and not self._short:
            return plan
        self._short = True
        most = max(most, LEAST_SESSIONS * math.ceil(settings / held))
        sessions = min(most, int(left / (setup + self.seconds)))
        return replace(
            plan,
            sessions=max(plan.sessions, sessions),
            session_seconds=min(plan.session_seconds, self.seconds),
            window_seconds=min(plan.window_seconds, fits),
        )
