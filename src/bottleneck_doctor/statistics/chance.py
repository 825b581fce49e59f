"""The chance that a setting is worth an edit, where nothing can be claimed of it yet.

An estimate and the spread as far as it is known go in, a chance from 0 to 1 comes out. The chance ranks undecided
settings and chooses a word for each; nothing is claimed from it. Pure. `docs/statistics.md` states what is assumed, and
`benchmarks/chances.py` prints how often the chances are right, and how they fail where the assumptions are wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from bottleneck_doctor.statistics.distributions import student_t_density, student_t_quantile, student_t_tail
from bottleneck_doctor.statistics.speedups import (
    EQUIVALENCE,
    MINIMUM_SESSIONS,
    MINIMUM_STANDARD_ERROR,
    SIGNIFICANCE,
    Observation,
    SpeedupEstimate,
    sessions_needed,
)
from bottleneck_doctor.statistics.spread import OF_PROCESSES

PROCESS_SPREAD = math.sqrt(OF_PROCESSES.variance)
"""Scale of the random deviation of a process, on the log scale, if a setting was measured in one process only. Its
windows have a part in it."""
PROCESS_DF = OF_PROCESSES.degrees_of_freedom
"""Degrees of freedom of that deviation."""
USELESS = 0.5
"""Part of all settings that are assumed to change nothing. Most loops are slow for one reason, and most fixes are for
another."""
LARGEST_CHANGE = math.log(2)
"""The others are assumed to change the speed by anything from half to double, uniformly on the log scale."""
WIDE_ERRORS = 3.0
"""The range is at least this many times the error: a prior narrower than the error would decide the result by
itself."""
WINDOW_SPREAD = 0.04
"""Assumed spread of a pair of windows, on the log scale, before any pair repeats. Quiet examinations show 2 to 5 %."""
WINDOW_DF = 2.0
"""The assumed spread weighs as much as this number of measured differences."""
PAIR_SHARE = 0.75
"""Variance of a pair, as a part of the variance of the difference between two baseline windows. A pair is one window
against the mean of two, so it has 1 + 1/2 times the variance of a window. The difference has 2 times."""
MOST_SESSIONS = 30
"""The most sessions that an examination may be asked to take. What needs more is called not to be settled by more
time."""


@dataclass(frozen=True)
class Spread:
    """The spread in one examination, on the log scale. `windows`: standard deviation of a pair of windows inside a
    process. `processes`: scale of the deviation of a process."""

    windows: float
    processes: float = PROCESS_SPREAD

    def of_differences(self) -> Spread:
        """The same for what one setting adds to another: there, two pairs are compared."""
        return replace(self, windows=math.sqrt(2) * self.windows)


def spread(
    observations: Iterable[Observation],
    baseline_changes: Iterable[float],
    estimates: Mapping[str, SpeedupEstimate],
    control: str = "aa",
) -> Spread:
    """The spread of an examination, estimated from its own windows.

    `observations`: all pairs; those that repeat inside a session count. `baseline_changes`: log ratios of baseline
    windows to the ones before them in the same session. `estimates`: of all settings. If most settings that were seen
    in several processes spread by more than is assumed, the others are taken to spread as much. The control is left
    out: the deviation of a process cancels in it, and its pairs are the baseline windows once more.
    """
    repeated: dict[tuple[str, int], list[float]] = defaultdict(list)
    for seen in observations:
        if seen.setting != control:
            repeated[seen.setting, seen.session].append(seen.log_ratio)
    squares = [WINDOW_DF * WINDOW_SPREAD**2]
    degrees = WINDOW_DF
    for _, values in sorted(repeated.items()):
        mean = fmean(values)
        squares += [(value - mean) ** 2 for value in values]
        degrees += len(values) - 1
    for change in baseline_changes:
        squares.append(PAIR_SHARE * change**2)
        degrees += 1
    known = [
        each.standard_error * math.sqrt(each.sessions)
        for setting, each in estimates.items()
        if each.sessions >= 2 and not each.lent and setting != control
    ]
    return Spread(
        windows=math.sqrt(math.fsum(sorted(squares)) / degrees),
        processes=max(PROCESS_SPREAD, median(known) if known else 0.0),
    )


def chance_worth(estimate: SpeedupEstimate, spread: Spread, *, least: float = EQUIVALENCE) -> float:
    """The chance, 0 to 1, that the true ratio is above 1 + `least`, so that the setting is worth an edit.

    From two sessions on, the error of the estimate is Student's t. It is never taken to be smaller than the spread of
    the windows allows, because two sessions may agree by chance. With one session, the deviation of the process is
    assumed. If such an error alone explains the estimate well, the setting likely changes nothing, as many settings do.
    """
    scale = max(estimate.standard_error, spread.windows / math.sqrt(estimate.pairs))
    degrees = estimate.degrees_of_freedom
    if estimate.sessions < 2:
        scale, degrees = _assumed(estimate, spread), PROCESS_DF
    worth = math.log1p(least)
    distance = (estimate.log_mean - worth) / scale
    tail = student_t_tail(abs(distance), degrees)
    # Below what is worth an edit, a smaller estimate must not look better just because chance explains it less well.
    nothing = USELESS * student_t_density(max(worth, estimate.log_mean) / scale, degrees) / scale
    something = (1 - USELESS) / (2 * max(LARGEST_CHANGE, WIDE_ERRORS * scale))
    return something / (something + nothing) * (1 - tail if distance > 0 else tail)


def at_least(estimate: SpeedupEstimate, spread: Spread, *, floor: float, fixes_tried: int = 1) -> float | None:
    """How many times as fast a setting surely is that was measured in one session; None if it may be no faster.

    As sure as a claim among `fixes_tried`: it leaves more to chance than a session of any program is likely to differ
    by.
    """
    if estimate.sessions != 1:
        return None
    quantile = student_t_quantile(1 - SIGNIFICANCE / (2 * max(1, fixes_tried)), PROCESS_DF)
    least = estimate.log_mean - quantile * _assumed(estimate, spread)
    return math.exp(least) if least > math.log1p(floor) else None


def sessions_to_settle(
    estimate: SpeedupEstimate, spread: Spread, *, floor: float, fixes_tried: int = 1, most: int = MOST_SESSIONS
) -> int | None:
    """About how many sessions a new examination needs for a verdict, if each has as many blocks as in this one.

    As `sessions_needed`, but from the beginning, since a new examination knows nothing of this one. If there was one
    session only, its spread is the one that `chance_worth` assumes. None if more than `most` would be needed.
    """
    if estimate.sessions < 2:
        error = max(MINIMUM_STANDARD_ERROR, _assumed(estimate, spread) / math.sqrt(2))
        estimate = replace(estimate, sessions=2, standard_error=error, degrees_of_freedom=1.0)
    more = sessions_needed(estimate, floor=floor, fixes_tried=fixes_tried, limit=max(0, most - estimate.sessions))
    return None if more is None else max(MINIMUM_SESSIONS, estimate.sessions + more)


def _assumed(estimate: SpeedupEstimate, spread: Spread) -> float:
    """Scale of the error of an estimate from one process: the deviation of the process, and no less than that of its
    windows."""
    return max(spread.processes, spread.windows / math.sqrt(estimate.pairs))
