"""The chance that a setting is worth an edit, where nothing can be claimed of it yet.

An estimate and what is known of the spread go in, a chance from 0 to 1 comes out. It orders what is still open and
chooses words for it; nothing is claimed from it. Pure. `docs/statistics.md` states what is assumed, and
`benchmarks/chances.py` prints how often the chances are right, and how they fail where the assumptions are wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from bottleneck_doctor.statistics.distributions import student_t_density, student_t_tail
from bottleneck_doctor.statistics.speedups import (
    EQUIVALENCE,
    MINIMUM_SESSIONS,
    MINIMUM_STANDARD_ERROR,
    Observation,
    SpeedupEstimate,
    sessions_needed,
)

PROCESS_SPREAD = 0.03
"""Scale of the luck of a process, on the log scale, where a setting was seen in one process only."""
PROCESS_DF = 2.0
"""Degrees of freedom of that luck: Student's t with two has six processes in ten within 3 %, where most were seen, and
three in a hundred beyond 17 %, which is how far two identical processes were seen apart."""
USELESS = 0.5
"""Part of all settings that are taken to change nothing. Most loops are slow for one reason, and most fixes answer
another."""
LARGEST_CHANGE = math.log(2)
"""The others are taken to change the speed by anything from half to double, all alike."""
WIDE_ERRORS = 3.0
"""Or by as many times the error, where that is more: an error says nothing of a prior that is narrower than itself."""
WINDOW_SPREAD = 0.04
"""What a pair of windows repeats to, before any repeats: in quiet examinations 2 to 5 %."""
WINDOW_DF = 2.0
"""Differences that this counts for beside those that were seen."""
PAIR_SHARE = 0.75
"""Variance of a pair as a part of that of the difference between two baseline windows. A pair is one window against the
mean of two: 1 + 1/2 times the variance of a window, where the difference has 2 times."""
MOST_SESSIONS = 30
"""Sessions that an examination can be asked to hold. What would take more is not settled by more time."""


@dataclass(frozen=True)
class Spread:
    """What repeats how well in one examination, on the log scale. `windows`: standard deviation of a pair of windows
    inside a process. `processes`: scale of the luck of a process."""

    windows: float
    processes: float = PROCESS_SPREAD

    def of_differences(self) -> Spread:
        """The same for what one setting adds to another, where two pairs are compared."""
        return replace(self, windows=math.sqrt(2) * self.windows)


def spread(
    observations: Iterable[Observation],
    baseline_changes: Iterable[float],
    estimates: Mapping[str, SpeedupEstimate],
    control: str = "aa",
) -> Spread:
    """What an examination says of its own spread.

    `observations`: all pairs; what repeats inside a session counts. `baseline_changes`: log ratios of baseline windows
    to the ones before them in the same session. `estimates`: of all settings. Where most of those that were seen in
    several processes spread by more than is assumed of processes, the others are taken to spread as much. The control
    says nothing of that, since the luck of a process cancels in it, and its pairs are the baseline windows again.
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
        if each.sessions >= 2 and setting != control
    ]
    return Spread(
        windows=math.sqrt(math.fsum(sorted(squares)) / degrees),
        processes=max(PROCESS_SPREAD, median(known) if known else 0.0),
    )


def chance_worth(estimate: SpeedupEstimate, spread: Spread, *, least: float = EQUIVALENCE) -> float:
    """The chance, 0 to 1, that the true ratio is above 1 + `least`, so that the setting is worth an edit.

    From two sessions on, the error of the estimate is Student's t; it is never taken to be smaller than the windows
    themselves leave it, since two sessions may agree by luck. With one session the luck of the process is assumed. Of
    an estimate that such an error alone explains well, it is likely that it changes nothing, as many settings do.
    """
    scale = max(estimate.standard_error, spread.windows / math.sqrt(estimate.pairs))
    degrees = estimate.degrees_of_freedom
    if estimate.sessions < 2:
        scale, degrees = _assumed(estimate, spread), PROCESS_DF
    worth = math.log1p(least)
    distance = (estimate.log_mean - worth) / scale
    tail = student_t_tail(abs(distance), degrees)
    # Below what is worth an edit, a smaller estimate must not look any better for being harder to explain by luck.
    nothing = USELESS * student_t_density(max(worth, estimate.log_mean) / scale, degrees) / scale
    something = (1 - USELESS) / (2 * max(LARGEST_CHANGE, WIDE_ERRORS * scale))
    return something / (something + nothing) * (1 - tail if distance > 0 else tail)


def sessions_to_settle(
    estimate: SpeedupEstimate, spread: Spread, *, floor: float, fixes_tried: int = 1, most: int = MOST_SESSIONS
) -> int | None:
    """About how many sessions a new examination needs for a verdict, of as many blocks as this one had.

    As `sessions_needed`, but from the beginning, since a new examination knows nothing of this one. What was seen in
    one session is taken to spread as `chance_worth` assumes. None where more than `most` would be needed.
    """
    if estimate.sessions < 2:
        error = max(MINIMUM_STANDARD_ERROR, _assumed(estimate, spread) / math.sqrt(2))
        estimate = replace(estimate, sessions=2, standard_error=error, degrees_of_freedom=1.0)
    more = sessions_needed(estimate, floor=floor, fixes_tried=fixes_tried, limit=max(0, most - estimate.sessions))
    return None if more is None else max(MINIMUM_SESSIONS, estimate.sessions + more)


def _assumed(estimate: SpeedupEstimate, spread: Spread) -> float:
    """Scale of the error of what was seen in one process: its luck and that of its windows."""
    return math.hypot(spread.processes, spread.windows / math.sqrt(estimate.pairs))
