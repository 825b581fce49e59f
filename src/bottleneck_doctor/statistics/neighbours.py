"""The load of other programs: what they wanted of the CPUs during a window, and whether that was unusual.

Windows of one training differ mostly by what else ran at the same time. So the baseline of a pair is adjusted to the
load that its setting met (`covariates`). Load means what other programs *wanted* of the CPUs, never what they got: a
setting that computes more leaves them less, and by what they get it would seem to have met a calmer machine. What
others wanted is known in two ways, neither of which can be trusted alone (`wanted`). Pure, standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

STEEPEST = 4.0
"""Largest slope of a log cost with the load that is believed: four times that of a training that shares all CPUs,
because caches are shared as well."""
MOST_TAKEN = 0.95
"""Part of all CPUs that others may get, at most, for `wanted`: how many threads stand behind more can't be told."""
DISTURBED = 0.25
"""A window is disturbed by this much more load than usual: on two CPUs, half a thread that wants one all the time."""
UNUSUAL = 3.0
"""If the load always comes and goes, a window is disturbed by a load that lies this many median deviations above the
usual one. That is two standard deviations, since the median deviation is two thirds of one."""


def wanted(seen: float, got: float, own: float, cpus: float) -> float:
    """How many threads of other programs wanted to run on average: the smaller one of two estimates.

    `seen`: as looks at the run queue say. Beside many busy threads of our own, they count too many: with nobody else
    there, up to 0.4. The other estimate follows from the CPUs that others `got` beside `own` threads of ours that ran
    or were ready to, if the kernel shares CPUs fairly among threads. Where it shares them among programs, that is too
    many beside many threads of ours. So each is too large where the other one is right, and a load that is too large
    makes a setting look better than it is.
    """
    # Others that are there all the time, or as many as there are CPUs for a part of it: whichever is more.
    got = min(max(0.0, got), MOST_TAKEN * cpus)
    return max(0.0, min(seen, max(got * own / (cpus - got), got * (own + cpus) / cpus)))


def load(wanted: float, cpus: float) -> float:
    """The load on a machine of `cpus` CPUs if on average `wanted` threads of other programs wanted to run.

    For a training that uses all CPUs itself, the cost of a step grows as (cpus + n) / cpus with n such threads. On this
    scale, the log of its cost has slope 1. A training that leaves CPUs free has a smaller slope.
    """
    return math.log1p(max(0.0, wanted) / max(1.0, cpus))


def disturbed(here: float, usual: Sequence[float]) -> bool:
    """Whether a window with the load `here` met much more than comparable windows, whose loads are `usual`. A neighbour
    that stays, or that always comes and goes, belongs to this machine and disturbs nothing."""
    return here > most_calm(usual)


def most_calm(usual: Iterable[float | None]) -> float:
    """The highest load that disturbs no window, if those of comparable windows are `usual`; infinite if none was
    seen."""
    seen = [each for each in usual if each is not None]
    if not seen:
        return math.inf
    centre = median(seen)
    return centre + max(DISTURBED, UNUSUAL * median(abs(each - centre) for each in seen))


def is_calm(load: float | None, most: float) -> bool:
    """Whether a window with this load was not disturbed, if `most` is the highest that disturbs none. One whose load
    was not seen counts as calm."""
    return load is None or load <= most
