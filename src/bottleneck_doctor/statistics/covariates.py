"""What the cost of a step depends on that differs from window to window by chance: slopes, fitted to the training as
written.

There are two such covariates: the load of other programs (`neighbours`), and the size of the batches, where they hold
rows of different lengths. The baseline of a pair is adjusted to what its setting met (analysis of covariance). Settings
are never adjusted: how they depend on a covariate is a property of each setting, and to be measured. Pure, standard
library only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

LEAST_SPARE = 4
"""A slope needs this many windows beyond the first of each process. To fewer windows, some slope always fits."""
DOUBT = 4.0
"""Nothing of a slope is believed unless its square exceeds this many times its squared standard error."""
LEAST_ERROR = 0.001
"""Smallest spread of log costs around a slope that is believed: no loop repeats to better than a tenth of a percent."""
LEAST_CHANGE = 0.02
"""If a covariate varies by less than this standard deviation inside processes, it counts as constant."""


@dataclass(frozen=True)
class Seen:
    """A window of the training as written: its process, the log of the cost of a step, and its covariates."""

    session: int
    log_cost: float
    covariates: Sequence[float]


def slopes(windows: Iterable[Seen], steepest: Sequence[float]) -> list[float]:
    """By how much the log cost of the training as written grows with each covariate, within processes.

    `steepest`: the largest slope of each that is believed. None is below 0: no covariate may make training faster. Each
    is shrunk towards 0 (W. James & C. Stein, Estimation with quadratic loss, 1961, the positive part), so that a chance
    pattern in a few windows is not believed. What is not believed is left out, and the rest is fitted again.

    No slope rests on a single window: it is the smaller one of two, of which the second is fitted without the window
    that lies farthest from the others of its process. A line through one such window always fits.
    """
    seen = list(windows)
    found = _fitted(seen, steepest)
    for which, slope in enumerate(found):
        if slope:
            others = _without_farthest(seen, which)
            found[which] = min(slope, _fitted(others, steepest, LEAST_SPARE - 1)[which])
    return found


def _without_farthest(windows: Sequence[Seen], which: int) -> list[Seen]:
    """The windows without the one whose covariate differs most from the median of its process."""
    sessions: dict[int, list[float]] = defaultdict(list)
    for window in windows:
        sessions[window.session].append(window.covariates[which])
    middle = {session: median(values) for session, values in sessions.items()}
    farthest = max(windows, key=lambda window: abs(window.covariates[which] - middle[window.session]))
    return [window for window in windows if window is not farthest]


def _fitted(windows: Iterable[Seen], steepest: Sequence[float], least_spare: int = LEAST_SPARE) -> list[float]:
    rows, spare = _within(windows)
    asked = [
        which
        for which in range(len(steepest))
        if spare >= least_spare and math.fsum(x[which] ** 2 for x, _ in rows) >= spare * LEAST_CHANGE**2
    ]
    found: dict[int, float] = {}
    while asked:
        found = dict(zip(asked, _shrunk(rows, spare, asked), strict=True))
        if all(slope > 0.0 for slope in found.values()):
            break
        worst = min(found, key=lambda which: found[which])
        asked.remove(worst)
        del found[worst]
    return [min(most, found.get(which, 0.0)) for which, most in enumerate(steepest)]


def _within(windows: Iterable[Seen]) -> tuple[list[tuple[list[float], float]], int]:
    """Covariates and log costs, each less its mean in the process, and how many of them are free to vary."""
    sessions: dict[int, list[Seen]] = defaultdict(list)
    for window in windows:
        sessions[window.session].append(window)
    rows: list[tuple[list[float], float]] = []
    spare = 0
    for group in sessions.values():
        means = [fmean(values) for values in zip(*(each.covariates for each in group), strict=True)]
        y = fmean([each.log_cost for each in group])
        rows += [
            ([value - mean for value, mean in zip(each.covariates, means, strict=True)], each.log_cost - y)
            for each in group
        ]
        spare += len(group) - 1
    return rows, spare


def _shrunk(rows: Sequence[tuple[Sequence[float], float]], spare: int, asked: Sequence[int]) -> list[float]:
    """The slopes of the covariates `asked` for, at most two, fitted together; 0 or less where one is not believed."""
    x = [[row[which] for row, _ in rows] for which in asked]
    y = [cost for _, cost in rows]
    plain, inverse = _least_squares(x, y)
    rest = [cost - math.fsum(b * value[k] for b, value in zip(plain, x, strict=True)) for k, cost in enumerate(y)]
    scatter = max(LEAST_ERROR**2, math.fsum(each * each for each in rest) / (spare - len(asked)))
    return [
        b * max(0.0, 1.0 - DOUBT * scatter * per / b**2) if b > 0 else b for b, per in zip(plain, inverse, strict=True)
    ]


def _least_squares(x: Sequence[Sequence[float]], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Slopes of one or two covariates, and their squared standard errors for a scatter of 1."""
    xx, xy = _product(x[0], x[0]), _product(x[0], y)
    if len(x) == 1:
        return [xy / xx], [1 / xx]
    zz, zy, xz = _product(x[1], x[1]), _product(x[1], y), _product(x[0], x[1])
    # If one follows from the other, neither slope can be told.
    free = max(xx * zz - xz * xz, 1e-9 * xx * zz)
    return [(zz * xy - xz * zy) / free, (xx * zy - xz * xy) / free], [zz / free, xx / free]


def _product(first: Sequence[float], second: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(first, second, strict=True))
