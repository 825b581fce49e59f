"""What may be said of one figure after so many pairs of processes: worse, not worse, or not known yet. Pure.

One number a pair enters (a difference of logs, or of shares): pairs are what luck is drawn for, so windows inside one
count as one. The check looks at it after each of a few numbers of pairs and stops once it knows. Looking often gives
luck as many chances, so the promised error rate is spent bit by bit: at each look a bound of Student's t is laid around
the mean, at a level such that all looks so far together are wrong no more often than was spent by then. So identical
revisions are called worse at most as often as promised, at any threshold and whenever it stops (K. K. G. Lan,
D. L. DeMets, Discrete sequential boundaries for clinical trials, 1983).

A false alarm costs somebody a morning; a slowdown just as large as the threshold that passes costs little, and one of
twice the threshold lies far off. So a figure is no worse once a bound at 2.5 %, spent in the same way, lies below the
threshold, which takes about a fifth fewer pairs than the alarms' rate would.

What is shown is an interval of 95 % at the stop, narrower than the bounds that decide: those guard against all looks
together, and it is made once (`interval`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, median, stdev
from typing import Literal

from bottleneck_doctor.measure.side_pairs import Own as Own
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.speedups import MINIMUM_STANDARD_ERROR

ERROR_RATE = 0.01
"""The promised share of checks of identical revisions that call a metric worse, all looks taken together."""

PASSING_RATE = 0.025
"""How often a change of the threshold itself is called no worse. It is spent in the same way."""

SHOWN = ((3, 0.02), (5, 0.0165), (7, 0.0125), (10, 0.01))
"""From so many pairs on, what the interval that is shown misses on each side by Student's t. A check stops when it
likes the figures, so at 2.5 % the interval would hold the truth in 90 to 95 % of checks: those that go on for long are
those whose figures mislead. At these levels it holds 94 to 97 %, whatever the truth, the threshold and the time
(`test_gate_decide` simulates it)."""

POWER = 0.9
"""How often a change of the size that is called the smallest visible would have been called a regression."""

INTERIM_LOOKS = (
    (3, 0.20, 0.20),
    (5, 0.20, 0.40),
    (7, 0.14, 0.52),
    (10, 0.145, 0.64),
    (14, 0.155, 0.76),
    (20, 0.165, 0.88),
    (30, 0.165, 1.00),
)
"""After so many pairs the check looks, at that part of the error rate, and so much is spent by then. Later looks see
the earlier ones' pairs again and are hardly wrong where those were right: so a part may be larger than what it spends.
The parts are simulated (numbers from a normal distribution, rates from 0.2 to 2.5 %, which `test_gate_decide` repeats);
were looks to have nothing in common, all of them would be wrong 1.17 times as often as promised.
When the time is over, the last look has what is not spent: time runs out whatever the figures are."""

LEAST_PAIRS = INTERIM_LOOKS[0][0]

SURE_PAIRS = 5
"""With fewer pairs, a regression has to exceed `LIFELONG` as well."""
LIFELONG = math.log(1.12)
"""By so much identical processes of a net bound by memory differ for their whole life, each as steady as the other, and
less with the allocator held steady. Such luck is often two-sided, fast or slow: then all of three pairs fall the same
way once in 64 times, and agree all the better."""

SURE = 0.95
"""How sure it must be that a spread is so large, or so small."""

TYPICAL_DEGREES = 8
"""As many degrees of freedom as the typical variance by windows weighs beside a pair's own, which has about three: more
would let bursts of a neighbour count, fewer would make three calm pairs look like two (simulated)."""

Answer = Literal["regression", "improvement", "unchanged", "cannot_tell"]


@dataclass(frozen=True)
class InterimLook:
    """One interim look, after so many pairs. `share`: the level of its bounds, as a part of any error rate."""

    pairs: int
    share: float


def interim_look_after(pairs: int, *, last: bool, fixed: bool = False) -> InterimLook | None:
    """The interim look to take now, or None where it is not time for one.

    `last`: no more pairs will come. `fixed`: their number was set beforehand, so that there is but one look, the last.
    """
    if pairs < 2:
        return None
    if fixed:
        return InterimLook(pairs, 1.0) if last else None
    if last:
        spent = max((by_then for number, _, by_then in INTERIM_LOOKS if number < pairs), default=0.0)
        # Where another look was to come, this one stands for it, and sees less that is new.
        coming = next((share for number, share, _ in INTERIM_LOOKS if number >= pairs), INTERIM_LOOKS[-1][1])
        return InterimLook(pairs, max(1.0 - spent, coming))
    return next((InterimLook(number, share) for number, share, _ in INTERIM_LOOKS if number == pairs), None)


def most_looked_at() -> int:
    """Pairs after which there is no further interim look."""
    return INTERIM_LOOKS[-1][0]


def degrees(alike: float) -> float:
    """Degrees of freedom of so many pairs that weigh alike."""
    return max(1.0, alike - 1)


@dataclass(frozen=True)
class GateEstimate:
    """The mean over pairs, its standard error, and how many there were (two at least).

    `effective`: as many pairs that weigh alike would say as much; None: all do.
    """

    pairs: int
    mean: float
    standard_error: float
    effective: float | None = field(default=None, kw_only=True)

    @property
    def alike(self) -> float:
        """Pairs that weigh alike."""
        return self.pairs if self.effective is None else self.effective

    def among(self, pairs: int) -> float:
        """How many of so many pairs would weigh alike, if the machine stays as it was."""
        return pairs * self.alike / self.pairs

    @property
    def df(self) -> float:
        """Degrees of freedom."""
        return degrees(self.alike)

    def bar(self, threshold: float, pairs: int) -> float:
        """What a regression has to exceed with so many pairs, in the unit of the values."""
        return threshold if pairs >= SURE_PAIRS else max(threshold, LIFELONG)

    def half_width(self, rate: float) -> float:
        """Half the width of the interval that misses the truth so often on each side."""
        return student_t_quantile(1 - rate, self.df) * self.standard_error


def weights(owns: Sequence[Own | None]) -> list[float]:
    """What each pair's number weighs: one over its variance by its own windows. Empty where none is known.

    A neighbour who is there for some seconds spoils a pair or two, whose windows differ more than others' do. Only that
    is looked at, never the number, so identical revisions stay as likely to look better as worse. A variance by few
    windows is known roughly, so each is drawn towards the typical one.
    """
    # Corrected so that of many the median is the true one (Wilson and Hilferty's approximation of chi-square's).
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
    """A mean with these weights; the plain one without any."""
    if not heavy:
        return fmean(values)
    return sum(weight * value for weight, value in zip(heavy, values, strict=True)) / sum(heavy)


def estimate(
    values: Sequence[float], owns: Sequence[Own | None] = (), least: float = MINIMUM_STANDARD_ERROR
) -> GateEstimate:
    """The mean of one number a pair. `owns`: what each may be off by itself, as far as that is known.

    Three numbers agree by luck now and then; they can't agree better than what they are made of (`owns`), nor better
    than anything repeats (`least`). Of five and more their own spread says enough: what few windows show of each is
    believed no further than that spread allows. Raises `ValueError` for fewer than two.
    """
    if len(values) < 2:
        raise ValueError("one pair says nothing of how much pairs differ")
    spread = stdev(values)
    known = [own.error**2 for own in owns if own is not None]
    own = _believed(math.sqrt(fmean(known)) if known else 0.0, spread, len(values), len(values) - 1)
    return GateEstimate(len(values), fmean(values), max(least, max(spread, own) / math.sqrt(len(values))))


def _believed(own: float, seen: float, pairs: int, df: float) -> float:
    """What windows say of pairs, as far as it is believed beside the spread that is seen of so many."""
    return own if pairs < SURE_PAIRS else min(own, seen * largest_part(df))


def largest_part(df: float) -> float:
    """How many times a spread seen with so many degrees of freedom the true one is at most, 95 % sure."""
    return _part(df, -1)


def least_part(df: float) -> float:
    """And at least, 95 % sure."""
    return _part(df, 1)


def _part(df: float, side: int) -> float:
    # Wilson and Hilferty's approximation of chi-square's quantile.
    cube = 1 - 2 / (9 * df) + side * NormalDist().inv_cdf(SURE) * math.sqrt(2 / (9 * df))
    part: float = cube**-1.5
    return part


def weighed(values: Sequence[float], owns: Sequence[Own | None], least: float = MINIMUM_STANDARD_ERROR) -> GateEstimate:
    """The same as a weighted mean; as `estimate` has it where no weights are known.

    Weights count as many pairs as would say as much if they weighed alike (Kish's effective number), so that three of
    which one is hardly heard are two. Windows are believed as far as in `estimate`.
    """
    heavy = weights(owns)
    if not heavy:
        return estimate(values, owns, least)
    total = sum(heavy)
    effective = total**2 / sum(weight**2 for weight in heavy)
    mean = weighted_mean(values, heavy)
    seen = math.sqrt(weighted_mean([(value - mean) ** 2 for value in values], heavy) / (effective - 1))
    own = _believed(1 / math.sqrt(total), seen, len(values), degrees(effective))
    return GateEstimate(len(values), mean, max(least, seen, own), effective=effective)


def decide(seen: GateEstimate, threshold: float, look: InterimLook, error_rate: float = ERROR_RATE) -> Answer:
    """What is known. `threshold` in the unit of the values: a log for ratios, points for shares; 0 or more.

    Regression: the lower bound lies above the threshold (`GateEstimate.bar`); improvement: the upper one below 0. Each
    is wrong at most `error_rate` of the time. Unchanged: the upper bound at `PASSING_RATE` lies below the threshold.
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
    """What is known, and the estimate that it rests on. Calm pairs are enough to call a slowdown, never to pass one.

    A head that stalls now and then makes its own pairs restless, as a neighbour would, and is fast in the calm ones. So
    all pairs weigh alike (`plain`) for every answer but a regression. That is told by the `weighted` ones alone, or
    where there are but a few, of which none can be spared, by the plain ones: two ways at a time would be two chances
    for luck.
    """
    answer = decide(plain, threshold, look, error_rate)
    if plain.pairs < SURE_PAIRS:
        return plain, answer
    if decide(weighted, threshold, look, error_rate) == "regression":
        return weighted, "regression"
    return plain, "cannot_tell" if answer == "regression" else answer


def interval(seen: GateEstimate, look: InterimLook) -> tuple[float, float]:
    """The interval of 95 % around the mean that is shown, in the unit of the values.

    It reaches no further than the bounds that decide, so what is called worse or not worse lies beyond the threshold
    with all of its interval. What can't be told yet may do so too.
    """
    by_pairs = max((pairs, rate) for pairs, rate in SHOWN if pairs <= max(look.pairs, LEAST_PAIRS))[1]
    # One look alone has no chance to choose when to stop.
    half = seen.half_width(max(by_pairs, PASSING_RATE * look.share))
    return seen.mean - half, seen.mean + half


def smallest(
    seen: GateEstimate, threshold: float, most_pairs: int, *, fixed: bool = False, error_rate: float = ERROR_RATE
) -> float | None:
    """The smallest change that would have been called a regression nine times in ten, in the unit of the values.

    By the spread seen, and with as many pairs as the check had room for: one that stops early because nothing changed
    would have gone on, had there been something. None where there is no room for a claim.
    """
    beyond = _seen_beyond(seen, most_pairs, fixed, error_rate)
    return None if beyond is None else seen.bar(threshold, max(seen.pairs, most_pairs)) + beyond


def floor(seen: GateEstimate, most_pairs: int, *, fixed: bool = False) -> float | None:
    """What doing nothing looks like at most, in the unit of the values: a threshold below that can't be judged here.

    Revisions that are the same would not be called unchanged nine times in ten.
    """
    return _seen_beyond(seen, most_pairs, fixed, PASSING_RATE)


def _seen_beyond(seen: GateEstimate, most_pairs: int, fixed: bool, error_rate: float) -> float | None:
    """How far from a bound the truth must lie to be told from it nine times in ten; None where there is no room."""
    pairs = max(seen.pairs, most_pairs)
    look = interim_look_after(pairs, last=True, fixed=fixed)
    if look is None or pairs < LEAST_PAIRS:
        return None
    # The spread of a few is more often too small than too large: its median is what it is divided by (Wilson and
    # Hilferty's approximation of chi-square's).
    spread: float = seen.standard_error * math.sqrt(seen.alike) / (1 - 2 / (9 * seen.df)) ** 1.5
    alike = seen.among(pairs)
    error = max(MINIMUM_STANDARD_ERROR, spread / math.sqrt(alike))
    df = degrees(alike)
    limit: float = student_t_quantile(1 - error_rate * look.share, df)
    # The distance at which a noncentral t passes the limit so often (Johnson and Welch's approximation, 1940).
    distance: float = limit + NormalDist().inv_cdf(POWER) * math.sqrt(1 + limit * limit / (2 * df))
    return distance * error
