"""What other programs on the machine cost the training as written: their load beside its windows in, a slope out.

Windows of one training differ mostly by what ran beside them, so the baseline of a pair is worked out for the load that
its setting met (analysis of covariance). Only the training as written tells the slope: a setting is never adjusted, so
how it fares beside others is its own. And load is what others *wanted* of the CPUs, never what they got: a setting
that computes more leaves them less, and would seem to have met a calmer machine. Pure, standard library only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

LEAST_SPARE = 4
"""Windows beyond one a process that a slope needs. Few windows and one slope fit one another whatever happened."""
DOUBT = 4.0
"""Squared standard errors by which a slope must lie above 0 before any of it is believed."""
LEAST_ERROR = 0.001
"""Smallest spread of log costs around a slope that is believed: no loop repeats to better than a tenth of a percent."""
LEAST_CHANGE = 0.02
"""Standard deviation of the load inside processes under which it is taken for one that stays."""
STEEPEST = 4.0
"""Largest slope that is believed: four times that of a training that shares all CPUs, for caches are shared as well."""
DISTURBED = 0.25
"""How much more load than usual disturbs a window: on two CPUs, half a thread that wants one all the time."""
UNUSUAL = 3.0
"""Where load always comes and goes, a window is disturbed by so many times as much more as is usual: twice the standard
deviation, of which two thirds are the median deviation."""


@dataclass(frozen=True)
class Beside:
    """A window of the training as written: in which process, the log of what a step cost, and the load beside it."""

    session: int
    log_cost: float
    load: float


def load(wanted: float, cpus: float) -> float:
    """How much others load a machine of `cpus` CPUs by as many threads that `wanted` to run, on average.

    What a step costs beside n such threads grows as (cpus + n) / cpus, for a training that uses all CPUs itself: on
    this scale the log of its cost has slope 1. One that leaves CPUs free has less.
    """
    return math.log1p(max(0.0, wanted) / max(1.0, cpus))


def slope(windows: Iterable[Beside]) -> float:
    """By how much the log cost of the training as written grows with the load beside it, within processes.

    Shrunk towards 0 (W. James & C. Stein, Estimation with quadratic loss, 1961, the positive part), so that what few
    quiet windows seem to say is not believed; and never below 0, for nobody is faster for having neighbours.
    """
    sessions: dict[int, list[Beside]] = defaultdict(list)
    for window in windows:
        sessions[window.session].append(window)
    xx = xy = yy = 0.0
    spare = 0
    for group in sessions.values():
        x, y = fmean([each.load for each in group]), fmean([each.log_cost for each in group])
        xx += math.fsum((each.load - x) ** 2 for each in group)
        xy += math.fsum((each.load - x) * (each.log_cost - y) for each in group)
        yy += math.fsum((each.log_cost - y) ** 2 for each in group)
        spare += len(group) - 1
    if spare < LEAST_SPARE or xx < spare * LEAST_CHANGE**2 or xy <= 0.0:
        return 0.0
    plain = xy / xx
    error = max(LEAST_ERROR**2, (yy - plain * xy) / (spare - 1)) / xx
    return min(STEEPEST, plain * max(0.0, 1.0 - DOUBT * error / plain**2))


def disturbed(here: float, usual: Sequence[float]) -> bool:
    """Whether a window with this load beside it met much more than its like. `usual`: their loads; a neighbour that
    stays, or that always comes and goes, is this machine as it is."""
    if not usual:
        return False
    centre = median(usual)
    return here > centre + max(DISTURBED, UNUSUAL * median(abs(each - centre) for each in usual))
