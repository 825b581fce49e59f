"""What age takes from the certainty of a baseline: means of stored times and their ages in, a variance out. Pure.

Some machines jump about one speed, and a baseline of last month says as much of them as one of yesterday. Others drift:
times that lie near each other differ less than times that lie far apart. Von Neumann's ratio tells one from the other:
the mean square of successive differences, halved, is as large as the variance if times know nothing of each other, and
smaller if they drift (J. von Neumann, Annals of Mathematical Statistics 12, 1941).

The drift is taken for a random walk, whose variance grows by D in a second. Stored times that span S seconds differ by
the variance B = D S / 6 then. A seconds after the last of them, the square of the distance from their mean is
D (S / 3 + A) on average, which is more than B by (1 + 6 A / S) B.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, linear_regression

from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.spread import variance

LEAST_TIMES = 5
"""Fewer times don't show whether they drift."""
DEGREES = 2.5
"""Degrees of freedom of a variance that is drift: the square of the sum of a walk's eigenvalues, 1 / (k pi)^2, over the
sum of their squares. A walk goes far by a few long turns, so one walk says little of the next."""
TREND_LEVEL = 0.95
"""Confidence with which a trend is told."""


def walked(means: Sequence[float]) -> float:
    """The part of the variance between times, oldest first, that is drift, from 0 to 1; 0 where too few show it."""
    between = variance(means) if len(means) >= LEAST_TIMES else 0.0
    if not between:
        return 0.0
    successive = fmean((after - before) ** 2 for before, after in pairwise(means)) / 2
    # In a walk over this many times, the ratio is this large.
    least = 3 / (len(means) - 1)
    return min(1.0, max(0.0, (1 - successive / between) / (1 - least)))


def added(means: Sequence[float], ages: Sequence[float]) -> float:
    """The variance that drift adds to what the means say of now. `ages`: seconds since each, the largest first."""
    span = ages[0] - ages[-1] if ages else 0.0
    if span <= 0:
        return 0.0
    return walked(means) * variance(means) * (1 + 6 * max(0.0, ages[-1]) / span)


def trend(means: Sequence[float], ages: Sequence[float]) -> float | None:
    """By how much the means have risen from the first time to the last, along a straight line; None where no line is
    sure to rise or fall. In the unit of the means."""
    if len(means) < LEAST_TIMES or ages[0] <= ages[-1]:
        return None
    slope, intercept = linear_regression(ages, means)
    rest = sum((mean - intercept - slope * age) ** 2 for mean, age in zip(means, ages, strict=True))
    centre, df = fmean(ages), len(means) - 2
    error = (rest / df / sum((age - centre) ** 2 for age in ages)) ** 0.5
    if abs(slope) <= student_t_quantile((1 + TREND_LEVEL) / 2, df) * error:
        return None
    return -slope * (ages[0] - ages[-1])
