"""Warming a process up: windows that are thrown away until its speed is level."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found

LEVEL = 0.05
"""Two windows in a row whose speeds differ by less than this are level."""
MOST_WINDOWS = 3
WARMED_UP_SECONDS = 1.0
"""Where windows are whole epochs, the rest of the epoch in which the loop was found warms up if it is this long."""


def needed(found: Found, costs: Costs) -> bool:
    """Whether a process that stands at the loop which it `found` may still be cold."""
    warms_itself = costs.epochs and costs.epoch_seconds > WARMED_UP_SECONDS
    return not (warms_itself or schedule.level(found.step_seconds))


def burn_in(
    measure: Callable[[], Window], *, most_seconds: float = math.inf, now: Callable[[], float] = time.monotonic
) -> bool:
    """Take windows until two in a row are level, or as many as warming up may take. No further one is begun once
    `most_seconds` are over. Returns False where a window timed nothing, so that nobody knows.
    """
    begun = now()
    last: float | None = None
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
