"""Whether going on can lead to an answer: what is known after some pairs in, what more of them would show out. Pure.

A threshold below what one pair of processes differs from the next by can't be judged, however long one looks at it in
the time that there is. Then the check says so after a few pairs, with the least that could be judged, and not after all
of them.
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
    """Of one metric that can't be told yet. `floor`: the least threshold that could be judged in the time there is, in
    the unit of the values. `pairs`: so many would do for the threshold as it is, None where not even the most would.
    `chance`: the chance of an answer. `below`: the threshold is too small whatever luck those few pairs had.
    """

    floor: float
    pairs: int | None
    chance: float
    below: bool

    @property
    def futile(self) -> bool:
        """Whether it is time to stop."""
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
    """What `most_pairs` would show of a threshold, in the unit of the values. None: there is no room for a claim.

    `weighted`: the estimate by which a regression may be told although `seen` tells nothing (`decide.settle`).
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
    """The chances that all pairs together will say worse, and not worse, by what is known of mean and spread."""
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
    # How far the mean of all is from that of the pairs so far, which are part of it.
    move = spread * math.sqrt(1 / seen.alike - 1 / alike)
    ways = (seen.bar(threshold, most_pairs) + worse - seen.mean, seen.mean + no_worse - threshold)
    is_worse, is_not = (_tail(way / move, seen.df) for way in ways)
    return is_worse, is_not


def _quieter(seen: GateEstimate) -> GateEstimate:
    """The same with the least spread that is likely."""
    return replace(seen, standard_error=max(MINIMUM_STANDARD_ERROR, seen.standard_error * decide.least_part(seen.df)))


def _tail(t: float, df: float) -> float:
    """The probability that Student's t exceeds `t`."""
    return student_t_tail(t, df) if t >= 0 else 1 - student_t_tail(-t, df)
