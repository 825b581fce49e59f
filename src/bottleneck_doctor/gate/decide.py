"""Decides on one figure after some pairs of processes: worse, not worse, or not known yet. Pure.

Each pair gives one number (a difference of logs, or of shares). Chance acts on whole pairs, so all windows inside a
pair count as one. The check looks at the numbers after certain numbers of pairs and stops once it is sure. Several
looks give chance several opportunities, so the promised error rate is spent in parts. At each look, a bound of
Student's t is laid around the mean, at a level at which all looks so far together are wrong no more often than was
spent by then. So identical revisions are called worse at most as often as promised, at any threshold and whenever the
check stops (K. K. G. Lan, D. L. DeMets, Discrete sequential boundaries for clinical trials, 1983).

A false alarm costs somebody a morning. If a slowdown exactly as large as the threshold passes, that costs little, and
one of twice the threshold hardly ever passes. So a figure is called no worse once a bound at 2.5 %, spent in the same
way, lies below the threshold. This takes about a fifth fewer pairs than the rate of alarms would.

The interval that is shown (`interval`) is a 95 % interval at the stop. It is narrower than the bounds that decide:
those guard against all looks together, while the interval is made only once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist, fmean, median
from typing import Literal

from bottleneck_doctor.measure.side_pairs import Own as Own
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.speedups import MINIMUM_STANDARD_ERROR
from bottleneck_doctor.statistics.spread import Spread, own_spread, with_others

ERROR_RATE = 0.01
"""The promised share of checks of identical revisions that call a metric worse, over all looks together."""

PASSING_RATE = 0.025
"""How often a change exactly as large as the threshold is called no worse. It is spent in the same way."""

SHOWN = ((3, 0.02), (5, 0.0165), (7, 0.0125), (10, 0.01))
"""From this many pairs on, the share that the shown interval misses on each side by Student's t. At 2.5 %, the interval
would contain the truth in 90 to 95 % of checks, because the checks that go on longest are those whose first figures
mislead. At these levels it contains the truth in 94 to 97 %, whatever the truth, the threshold and the time
(`test_gate_decide` simulates it)."""

POWER = 0.9
"""How often a change as large as the smallest detectable one would have been called a regression."""

INTERIM_LOOKS = (
    (3, 0.20, 0.20),
    (5, 0.20, 0.40),
    (7, 0.14, 0.52),
    (10, 0.145, 0.64),
    (14, 0.155, 0.76),
    (20, 0.165, 0.88),
    (30, 0.165, 1.00),
)
"""For each look: the number of pairs, its part of the error rate, and the part that is spent by then. Later looks
include the pairs of earlier ones, and are rarely wrong if those were right. So a look's part may be larger than what it
spends. The parts come from simulations (numbers from a normal distribution, rates from 0.2 to 2.5 %, which
`test_gate_decide` repeats). If looks had no pairs in common, all of them together would be wrong 1.17 times as often as
promised. When the time is over, the last look gets what is not spent: the time does not depend on the figures."""

LEAST_PAIRS = INTERIM_LOOKS[0][0]

SURE_PAIRS = 5
"""With fewer pairs, a regression has to exceed `LIFELONG` as well."""
LIFELONG = math.log(1.12)
"""Identical processes of a memory-bound network may differ by this much for as long as they live, each of them steady.
With a steady allocator they differ by less. Often there are two kinds, fast and slow. Then once in 64 times, all of
three pairs differ in the same direction, and also agree closely."""

SURE = 0.95
"""Confidence of the limits to a spread (`largest_part`, `least_part`)."""

TYPICAL_DEGREES = 8
"""Degrees of freedom of the typical variance of windows, next to a pair's own, which has about three. With more, bursts
of another program would count too much; with fewer, three quiet pairs would look like two (simulated)."""

Answer = Literal["regression", "improvement", "unchanged", "cannot_tell"]


@dataclass(frozen=True)
class InterimLook:
    """One interim look, after `pairs` pairs. `share`: the level of its bounds, as a part of any error rate."""

    pairs: int
    share: float


@lru_cache(maxsize=1024)
def interim_look_after(pairs: int, *, last: bool, fixed: bool = False) -> InterimLook | None:
    """The interim look to take after `pairs` pairs, or None if it is not time for one.

    `last`: no more pairs will come. `fixed`: their number was set beforehand, so the only look is the last one.
    """
    if pairs < 2:
        return None
    if fixed:
        return InterimLook(pairs, 1.0) if last else None
    if last:
        spent = max((by_then for number, _, by_then in INTERIM_LOOKS if number < pairs), default=0.0)
        # If another look was still to come, this one takes its place, with fewer new pairs.
        coming = next((share for number, share, _ in INTERIM_LOOKS if number >= pairs), INTERIM_LOOKS[-1][1])
        return InterimLook(pairs, max(1.0 - spent, coming))
    return next((InterimLook(number, share) for number, share, _ in INTERIM_LOOKS if number == pairs), None)


def most_looked_at() -> int:
    """The number of pairs after which there is no further interim look."""
    return INTERIM_LOOKS[-1][0]


def degrees(alike: float) -> float:
    """Degrees of freedom of `alike` equally weighted pairs."""
    return max(1.0, alike - 1)


@dataclass(frozen=True)
class GateEstimate:
    """The mean over pairs, its standard error, and the number of pairs (two at least).

    `effective`: the number of equally weighted pairs that would say as much; None if all pairs weigh alike. `lent`:
    degrees of freedom that earlier checks add.
    """

    pairs: int
    mean: float
    standard_error: float
    effective: float | None = field(default=None, kw_only=True)
    lent: float = field(default=0.0, kw_only=True)

    @property
    def alike(self) -> float:
        """The effective number of equally weighted pairs."""
        return self.pairs if self.effective is None else self.effective

    def among(self, pairs: int) -> float:
        """The effective number for a total of `pairs`, if the machine stays as it was."""
        return pairs * self.alike / self.pairs

    @property
    def df(self) -> float:
        """Degrees of freedom."""
        return degrees(self.alike) + self.lent

    def df_among(self, pairs: int) -> float:
        """The same for a total of `pairs`, if the machine stays as it was."""
        return degrees(self.among(pairs)) + self.lent

    def bar(self, threshold: float, pairs: int) -> float:
        """What a regression has to exceed with this number of pairs, in the unit of the values."""
        # Earlier checks have seen how much processes differ for as long as they live.
        return threshold if pairs >= SURE_PAIRS or self.lent else max(threshold, LIFELONG)

    def half_width(self, rate: float) -> float:
        """Half the width of the interval that misses the truth at this rate on each side."""
        return student_t_quantile(1 - rate, self.df) * self.standard_error


def weights(owns: Sequence[Own | None]) -> list[float]:
    """The weight of each pair: one over the variance that its own windows show. Empty if no variance is known.

    A program that runs for some seconds spoils a pair or two, and the windows of these pairs differ more than those of
    others. The weight depends on that alone, never on the pair's number, so identical revisions stay as likely to look
    better as worse. Few windows give only a rough variance, so each is drawn towards the typical one.
    """
    # Corrected so that the median of many is the true variance (Wilson and Hilferty's approximation of chi-square's).
    known = [own.error**2 / (1 - 2 / (9 * own.degrees)) ** 3 for own in owns if own is not None]
    if not known:
        return []
    typical = max(median(known), MINIMUM_STANDARD_ERROR**2)
    return [
        1 / typical
        if own is None
        else (TYPICAL_DEGREES + own.degrees) / (TYPICAL_DEGREES * typical + own.degrees * own.error**2)
        for own in owns
    ]


def weighted_mean(values: Sequence[float], heavy: Sequence[float]) -> float:
    """The mean with these weights, or the plain mean if there are none."""
    if not heavy:
        return fmean(values)
    return sum(weight * value for weight, value in zip(heavy, values, strict=True)) / sum(heavy)


def estimate(
    values: Sequence[float],
    owns: Sequence[Own | None] = (),
    least: float = MINIMUM_STANDARD_ERROR,
    lent: Spread | None = None,
) -> GateEstimate:
    """The mean of one number a pair. `owns`: the error of each by its own windows, as far as it is known. `lent`: how
    much pairs differed in earlier checks of the same program.

    Three numbers sometimes agree by chance. They are taken to agree no better than their windows do (`owns`), and no
    better than anything repeats (`least`). Five and more show enough by their own spread: then the error by windows is
    believed only as far as that spread allows. Raises `ValueError` for fewer than two.
    """
    if len(values) < 2:
        raise ValueError("one pair says nothing of how much pairs differ")
    seen = _with_lent(own_spread(values), lent)
    spread = math.sqrt(seen.variance)
    known = [own.error**2 for own in owns if own is not None]
    own = _believed(math.sqrt(fmean(known)) if known else 0.0, spread, len(values), seen.degrees_of_freedom)
    error = max(least, max(spread, own) / math.sqrt(len(values)))
    return GateEstimate(len(values), fmean(values), error, lent=lent.degrees_of_freedom if lent else 0.0)


def _with_lent(seen: Spread, lent: Spread | None) -> Spread:
    """The spread between these pairs, with what earlier checks say of it: a small one may be chance, a large one may be
    true of today."""
    return seen if lent is None else with_others(seen, lent)


def _believed(own: float, seen: float, pairs: int, df: float) -> float:
    """The error of a pair by its windows, limited by the spread that was seen between this many pairs."""
    return own if pairs < SURE_PAIRS else min(own, seen * largest_part(df))


def largest_part(df: float) -> float:
    """The true spread is at most this many times the one seen with `df` degrees of freedom (95 % sure)."""
    return _part(df, -1)


def least_part(df: float) -> float:
    """The true spread is at least this many times the one seen with `df` degrees of freedom (95 % sure)."""
    return _part(df, 1)


def _part(df: float, side: int) -> float:
    # Wilson and Hilferty's approximation of chi-square's quantile.
    cube = 1 - 2 / (9 * df) + side * NormalDist().inv_cdf(SURE) * math.sqrt(2 / (9 * df))
    part: float = cube**-1.5
    return part


def weighed(
    values: Sequence[float],
    owns: Sequence[Own | None],
    least: float = MINIMUM_STANDARD_ERROR,
    lent: Spread | None = None,
) -> GateEstimate:
    """As `estimate`, with a weighted mean; without known weights, it is `estimate`.

    The number of pairs is the number of equally weighted pairs that would say as much (Kish's effective number). So
    three pairs, one of which has hardly any weight, count as two. The errors by windows are limited as in `estimate`.
    """
    heavy = weights(owns)
    if not heavy:
        return estimate(values, owns, least, lent)
    total = sum(heavy)
    effective = total**2 / sum(weight**2 for weight in heavy)
    mean = weighted_mean(values, heavy)
    scatter = weighted_mean([(value - mean) ** 2 for value in values], heavy) * effective / (effective - 1)
    spread = _with_lent(Spread(scatter, degrees(effective)), lent)
    seen = math.sqrt(spread.variance / effective)
    own = _believed(1 / math.sqrt(total), seen, len(values), spread.degrees_of_freedom)
    lends = lent.degrees_of_freedom if lent else 0.0
    return GateEstimate(len(values), mean, max(least, seen, own), effective=effective, lent=lends)


def decide(seen: GateEstimate, threshold: float, look: InterimLook, error_rate: float = ERROR_RATE) -> Answer:
    """The answer at this look. `threshold`: in the unit of the values, a log for ratios, points for shares; 0 or more.

    Regression: the lower bound lies above the threshold (`GateEstimate.bar`). Improvement: the upper bound lies below
    0. Each is wrong at most at the rate `error_rate`. Unchanged: the upper bound at `PASSING_RATE` lies below the
    threshold.
    """
    if seen.pairs < LEAST_PAIRS:
        return "cannot_tell"
    half = seen.half_width(error_rate * look.share)
    if seen.mean - half > seen.bar(threshold, seen.pairs):
        return "regression"
    if seen.mean + half < 0:
        return "improvement"
    return "unchanged" if seen.mean + seen.half_width(PASSING_RATE * look.share) < threshold else "cannot_tell"


def settle(
    plain: GateEstimate, weighted: GateEstimate, threshold: float, look: InterimLook, error_rate: float = ERROR_RATE
) -> tuple[GateEstimate, Answer]:
    """The answer, and the estimate that it rests on. Quiet pairs are enough to call a slowdown, never to pass one.

    A head that stalls now and then makes its own pairs uneven, as another program would, and is fast in the quiet ones.
    So for every answer except a regression, all pairs weigh alike (`plain`). A regression is called by the `weighted`
    estimate alone. With few pairs none can be spared, and the plain estimate alone calls it. Testing both would give
    chance a second opportunity.
    """
    answer = decide(plain, threshold, look, error_rate)
    if plain.pairs < SURE_PAIRS:
        return plain, answer
    if decide(weighted, threshold, look, error_rate) == "regression":
        return weighted, "regression"
    return plain, "cannot_tell" if answer == "regression" else answer


def interval(seen: GateEstimate, look: InterimLook) -> tuple[float, float]:
    """The 95 % interval around the mean that is shown, in the unit of the values.

    It is never wider than the bounds that decide. So if a metric is called worse or not worse, its whole interval lies
    on one side of the threshold. The reverse does not hold: such an interval may still be `cannot_tell`.
    """
    by_pairs = max((pairs, rate) for pairs, rate in SHOWN if pairs <= max(look.pairs, LEAST_PAIRS))[1]
    # If there is a single look, the figures can't choose when to stop.
    half = seen.half_width(max(by_pairs, PASSING_RATE * look.share))
    return seen.mean - half, seen.mean + half


def smallest(
    seen: GateEstimate, threshold: float, most_pairs: int, *, fixed: bool = False, error_rate: float = ERROR_RATE
) -> float | None:
    """The smallest change that would have been called a regression nine times in ten, in the unit of the values.

    It follows from the spread that was seen and from the number of pairs that the check had time for: a check that
    stopped early because nothing changed would have gone on if something had. None if there is no time for a claim.
    """
    beyond = seen_beyond(seen, most_pairs, error_rate, fixed=fixed)
    return None if beyond is None else seen.bar(threshold, max(seen.pairs, most_pairs)) + beyond


def floor(seen: GateEstimate, most_pairs: int, *, fixed: bool = False) -> float | None:
    """The smallest threshold that can be judged here, in the unit of the values.

    With a smaller one, identical revisions would be called unchanged in fewer than nine checks in ten.
    """
    return seen_beyond(seen, most_pairs, PASSING_RATE, fixed=fixed)


def seen_beyond(
    seen: GateEstimate, most_pairs: int, error_rate: float, *, fixed: bool = False, power: float = POWER
) -> float | None:
    """How far from a bound the truth must lie to be told from it so often (`power`); None where there is no room."""
    pairs = max(seen.pairs, most_pairs)
    look = interim_look_after(pairs, last=True, fixed=fixed)
    if look is None or pairs < LEAST_PAIRS:
        return None
    # The spread of a few pairs is more often too small than too large. So it is divided by the median of its ratio to
    # the true one (Wilson and Hilferty's approximation of chi-square's).
    spread: float = seen.standard_error * math.sqrt(seen.alike) / (1 - 2 / (9 * seen.df)) ** 1.5
    alike = seen.among(pairs)
    error = max(MINIMUM_STANDARD_ERROR, spread / math.sqrt(alike))
    df = seen.df_among(pairs)
    limit: float = student_t_quantile(1 - error_rate * look.share, df)
    # The distance at which a noncentral t passes the limit so often (Johnson and Welch's approximation, 1940).
    distance: float = limit + NormalDist().inv_cdf(power) * math.sqrt(1 + limit * limit / (2 * df))
    return distance * error
