"""Whether going on can lead to an answer: an estimate after some pairs in, what more pairs would show out. Pure.

Pairs of processes differ from one another. A threshold that is much smaller than these differences can't be judged in
the time that there is. Then the check says so after a few pairs instead of after all of them, and names the smallest
threshold that could be judged.
"""

from __future__ import annotations

import math
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
    floor = decide.floor(seen, most_pairs, fixed=fixed)
    if floor is None:
        return None
    least = decide.floor(_quieter(seen), most_pairs, fixed=fixed)
    enough = (
        pairs
        for pairs in range(max(LEAST_PAIRS, seen.pairs), decide.most_looked_at() + 1)
        if (needed := decide.floor(seen, pairs, fixed=fixed)) is not None and needed <= threshold
    )
    is_worse, is_not = _chances(seen, threshold, most_pairs, error_rate)
    if weighted is not None:
        is_worse = max(is_worse, _chances(weighted, threshold, most_pairs, error_rate)[0])
    return Futility(
        floor=floor,
        pairs=next(enough, None),
        chance=min(1.0, is_worse + is_not),
        below=least is not None and least > threshold,
    )


def chance_of_worse(seen: GateEstimate, threshold: float, most_pairs: int, error_rate: float) -> float:
    """The chance that all pairs together will call this worse than the threshold, in the unit of the values."""
    return _chances(seen, threshold, most_pairs, error_rate)[0]


def _chances(seen: GateEstimate, threshold: float, most_pairs: int, error_rate: float) -> tuple[float, float]:
    """The chances that all pairs together will say worse, and not worse, given the mean and the spread so far."""
    look = decide.interim_look_after(most_pairs, last=True)
    if look is None or most_pairs <= seen.pairs:
        return 0.0, 0.0
    alike = seen.among(most_pairs)
    spread = seen.standard_error * math.sqrt(seen.alike)
    error = max(MINIMUM_STANDARD_ERROR, spread * decide.least_part(seen.df) / math.sqrt(alike))
    worse, no_worse = (
        student_t_quantile(1 - rate * look.share, decide.degrees(alike)) * error
        for rate in (error_rate, decide.PASSING_RATE)
    )
    # How far the mean of all pairs may move from the mean of the pairs so far, which are part of it.
    move = spread * math.sqrt(1 / seen.alike - 1 / alike)
    ways = (seen.bar(threshold, most_pairs) + worse - seen.mean, seen.mean + no_worse - threshold)
    is_worse, is_not = (_tail(way / move, seen.df) for way in ways)
    return is_worse, is_not


def _quieter(seen: GateEstimate) -> GateEstimate:
    """The same estimate with the smallest spread that is likely."""
    return replace(seen, standard_error=max(MINIMUM_STANDARD_ERROR, seen.standard_error * decide.least_part(seen.df)))


def _tail(t: float, df: float) -> float:
    """The probability that Student's t exceeds `t`."""
    return student_t_tail(t, df) if t >= 0 else 1 - student_t_tail(-t, df)
