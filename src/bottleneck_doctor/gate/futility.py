"""Whether going on can lead to an answer: an estimate after some pairs in, what more pairs would show out. Pure.

Pairs of processes differ from one another. A threshold that is much smaller than these differences can't be judged in
the time that there is. Then the check says so after a few pairs instead of after all of them, and names the smallest
threshold that could be judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.decide import ERROR_RATE, LEAST_PAIRS, GateEstimate
from bottleneck_doctor.statistics.distributions import student_t_quantile, student_t_tail
from bottleneck_doctor.statistics.speedups import MINIMUM_STANDARD_ERROR

LEAST_CHANCE = 0.2
"""A check goes on as long as the chance of an answer is larger than this."""


@dataclass(frozen=True)
class Futility:
    """The prospects of one metric that is still undecided. `floor`: the smallest threshold that could be judged in the
    time, in the unit of the values. `pairs`: the number that would be enough for the threshold as it is; None if not
    even the largest number would. `chance`: the chance of an answer. `below`: whether the threshold is too small even
    if these pairs were unlucky.
    """

    floor: float
    pairs: int | None
    chance: float
    below: bool

    @property
    def futile(self) -> bool:
        """Whether the check should give up."""
        return self.below and self.chance < LEAST_CHANCE


def futility(
    seen: GateEstimate,
    threshold: float,
    most_pairs: int,
    *,
    weighted: GateEstimate | None = None,
    fixed: bool = False,
    error_rate: float = ERROR_RATE,
) -> Futility | None:
    """What `most_pairs` would show about a threshold, in the unit of the values. None if there is no time for a claim.

    `weighted`: the estimate that may call a regression although `seen` decides nothing (`decide.settle`).
    """
    is_worse, is_not = _chances(seen, threshold, most_pairs, error_rate)
    if weighted is not None:
        is_worse = max(is_worse, _chances(weighted, threshold, most_pairs, error_rate)[0])
    return looked_at(
        seen,
        threshold,
        most_pairs,
        floor=lambda each, pairs: decide.floor(each, pairs, fixed=fixed),
        chance=min(1.0, is_worse + is_not),
    )


def looked_at(
    seen: GateEstimate,
    threshold: float,
    most_pairs: int,
    *,
    floor: Callable[[GateEstimate, int], float | None],
    chance: float,
) -> Futility | None:
    """The same of any question that has a threshold. `floor`: the least that so many pairs can judge. `chance`: that of
    an answer."""
    judged = floor(seen, most_pairs)
    if judged is None:
        return None
    least = floor(_quieter(seen), most_pairs)
    enough = (
        pairs
        for pairs in range(max(LEAST_PAIRS, seen.pairs), decide.most_looked_at() + 1)
        if (needed := floor(seen, pairs)) is not None and needed <= threshold
    )
    return Futility(
        floor=judged, pairs=next(enough, None), chance=chance, below=least is not None and least > threshold
    )


def chance_of_worse(seen: GateEstimate, threshold: float, most_pairs: int, error_rate: float) -> float:
    """The chance that all pairs together will call this worse than the threshold, in the unit of the values."""
    return _chances(seen, threshold, most_pairs, error_rate)[0]


def _chances(seen: GateEstimate, threshold: float, most_pairs: int, error_rate: float) -> tuple[float, float]:
    """The chances that all pairs together will say worse, and not worse, given the mean and the spread so far."""
    coming = prospect(seen, most_pairs)
    if coming is None:
        return 0.0, 0.0
    is_worse = coming.above(seen.bar(threshold, most_pairs) + coming.half_width(error_rate))
    return is_worse, coming.below(threshold - coming.half_width(decide.PASSING_RATE))


@dataclass(frozen=True)
class Prospect:
    """What all pairs together will show, by what is known of mean and spread. `move`: how far the mean of all is from
    that of the pairs so far, which are part of it."""

    seen: GateEstimate
    move: float
    error: float
    df: float
    share: float

    def half_width(self, rate: float) -> float:
        """Of the bounds at the last look, at this error rate."""
        return student_t_quantile(1 - rate * self.share, self.df) * self.error

    def above(self, value: float) -> float:
        """The chance that the mean of all pairs exceeds a value."""
        return _tail((value - self.seen.mean) / self.move, self.seen.df)

    def below(self, value: float) -> float:
        """The chance that it does not reach a value."""
        return _tail((self.seen.mean - value) / self.move, self.seen.df)


def prospect(seen: GateEstimate, most_pairs: int) -> Prospect | None:
    """What `most_pairs` will show; None where no more are to come."""
    look = decide.interim_look_after(most_pairs, last=True)
    if look is None or most_pairs <= seen.pairs:
        return None
    alike = seen.among(most_pairs)
    spread = seen.standard_error * math.sqrt(seen.alike)
    return Prospect(
        seen=seen,
        move=spread * math.sqrt(1 / seen.alike - 1 / alike),
        error=max(MINIMUM_STANDARD_ERROR, spread * decide.least_part(seen.df) / math.sqrt(alike)),
        df=seen.df_among(most_pairs),
        share=look.share,
    )


def _quieter(seen: GateEstimate) -> GateEstimate:
    """The same estimate with the smallest spread that is likely."""
    return replace(seen, standard_error=max(MINIMUM_STANDARD_ERROR, seen.standard_error * decide.least_part(seen.df)))


def _tail(t: float, df: float) -> float:
    """The probability that Student's t exceeds `t`."""
    return student_t_tail(t, df) if t >= 0 else 1 - student_t_tail(-t, df)
