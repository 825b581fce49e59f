"""Warms a process up: windows that are thrown away until its speed no longer changes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found

LEVEL = 0.05
"""Two windows in a row are level if their speeds differ by less than this part."""
MOST_WINDOWS = 3
LONG_STEP = 0.5
"""Steps of this many seconds or more lose less than `LEVEL` to timers, synchronisation and py-spy."""
WARMED_UP_SECONDS = 1.0
"""If windows are whole epochs, an epoch of more seconds than this warms the process up, since its rest comes first. So
do the steps in which the loop was found, if they took as long and one takes `LONG_LEAD_IN`."""
ENOUGH_SECONDS = 3.0
"""Where processes stand side by side, none trains for longer than this only to be warm. By then, speeds that differ
from window to window do so by chance, and what is left to warm up meets all processes alike."""


def needed(found: Found, costs: Costs, explained: Sequence[Window] = ()) -> bool:
    """Whether a process that stands at its loop may still be cold. `explained`: windows as written that it has run
    since to explain."""
    warms_itself = costs.epochs and costs.epoch_seconds > WARMED_UP_SECONDS
    return not (warms_itself or schedule.level(found.step_seconds) or _levelled(explained))


def has_trained_long(found: Found, costs: Costs) -> bool:
    """Whether steps are so long that those in which the loop was found have warmed the process up."""
    return costs.has_long_steps and sum(found.step_seconds) >= WARMED_UP_SECONDS


def most_windows(costs: Costs) -> int:
    """How many windows warm a process up at most. One is enough if long steps were alike in the first process as soon
    as it had found its loop: what a second one shows differs by no more than windows do."""
    return 1 if costs.regular and costs.baseline_step >= schedule.LONG_LEAD_IN else MOST_WINDOWS


def _levelled(explained: Sequence[Window]) -> bool:
    """Whether windows that explain have warmed the process up. If steps are long, timers and profilers change them by
    far less than warming up does, so these windows serve as well as those that are thrown away."""
    speeds = [speed for speed in map(shown_speed, explained) if speed is not None][-2:]
    return len(speeds) == 2 and abs(math.log(speeds[1] / speeds[0])) < LEVEL


def shown_speed(explained: Window) -> float | None:
    """Samples a second in a window that explains; None if steps are so short that timers or profilers slowed them."""
    if not explained.samples or explained.seconds < LONG_STEP * explained.steps:
        return None
    return explained.samples / explained.seconds


def burn_in(
    measure: Callable[[], Window],
    *,
    most: int = MOST_WINDOWS,
    last: float | None = None,
    most_seconds: float = math.inf,
    now: Callable[[], float] = time.monotonic,
) -> bool:
    """Take windows until two in a row are level, `most` at most. None is begun after `most_seconds`. `last`:
    samples a second in the window before, if there was one.

    Returns False if a window timed nothing, so that nothing is known about the speed.
    """
    begun = now()
    for _ in range(most):
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
