"""Warming a process up: windows that are thrown away until its speed is level."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found

LEVEL = 0.05
"""Two windows in a row whose speeds differ by less than this are level."""
MOST_WINDOWS = 3
LONG_STEP = 0.5
"""Seconds of a step from which timers, synchronisation and py-spy cost less than `LEVEL` of it."""
WARMED_UP_SECONDS = 1.0
"""Where windows are whole epochs, the rest of the epoch in which the loop was found warms up if it is this long."""


def needed(found: Found, costs: Costs, explained: Sequence[Window] = ()) -> bool:
    """Whether a process that stands at the loop which it `found` may still be cold. `explained`: windows as written
    that it has run since, which were there to explain."""
    warms_itself = costs.epochs and costs.epoch_seconds > WARMED_UP_SECONDS
    return not (warms_itself or schedule.level(found.step_seconds) or _levelled(explained))


def _levelled(explained: Sequence[Window]) -> bool:
    """Whether windows that explain warmed the process up, as any that is thrown away would have: where their steps are
    long, what they put on changes them by far less than warming up does."""
    speeds = [speed for speed in map(shown_speed, explained) if speed is not None][-2:]
    return len(speeds) == 2 and abs(math.log(speeds[1] / speeds[0])) < LEVEL


def shown_speed(explained: Window) -> float | None:
    """Samples a second in a window that explains; None where steps are so short that what it put on has slowed them."""
    if not explained.samples or explained.seconds < LONG_STEP * explained.steps:
        return None
    return explained.samples / explained.seconds


def burn_in(
    measure: Callable[[], Window],
    *,
    last: float | None = None,
    most_seconds: float = math.inf,
    now: Callable[[], float] = time.monotonic,
) -> bool:
    """Take windows until two in a row are level, or as many as warming up may take. No further one is begun once
    `most_seconds` are over. `last`: samples a second in the window before, where there was one.

    Returns False where a window timed nothing, so that nobody knows.
    """
    begun = now()
    for _ in range(MOST_WINDOWS):
        window = measure()
        if not window.samples or not window.seconds:
            return False
        speed = window.samples / window.seconds
        if last is not None and abs(math.log(speed / last)) < LEVEL:
            break
        if now() - begun > most_seconds:
            break
        last = speed
    return True
