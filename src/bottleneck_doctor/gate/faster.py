"""What may be said of an edit after so many pairs of processes: faster, slower, no difference, or not known yet. Pure.

A check asks whether the head is worse; of an edit somebody wants to know what it is worth, so both directions are
asked about. An edit that changes nothing is called faster or slower at most as often as a check promises of identical
revisions (`decide.ERROR_RATE`), half of it in each direction, spent over the looks as `decide` spends it.

*No difference* means that all of the interval lies within the threshold, on both sides; what lies there is never called
faster or slower, however sure it is. *Faster* and *slower* mean that all of the interval lies on one side of no change.
Looking does not end with that: it goes on until the ratio is known well enough to act on (`known_well`).
"""

from __future__ import annotations

import math

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.decide import (
    ERROR_RATE,
    LEAST_PAIRS,
    LIFELONG,
    PASSING_RATE,
    POWER,
    SHOWN,
    SURE_PAIRS,
    Answer,
    GateEstimate,
    InterimLook,
)
from bottleneck_doctor.gate.futility import Futility, looked_at, prospect

LEAST_KEPT = 0.5
"""Part of the gain (of its log) that the near end of the interval must keep, so that measuring may end."""
LEAST_PART = 0.9
"""What that end must be of the estimate, at least: as for ending an examination early."""
TIME_LEFT = 0.05
"""Or the time of a step that is left is known this well, as a part of the time as written: at a gain of two times, that
is a tenth of the estimate, too. Beyond it, what is left is what somebody still waits for, and nine times need not be
told from seven."""
FAR = math.log(1.5)
"""Two pairs are enough for an edit if all of the interval lies beyond this: processes of one program never differ so
much. Where a pair takes minutes, there is often no time for a third."""


def bar(pairs: int) -> float:
    """What a change has to exceed to be called one, in the unit of the values: more with few pairs, whose luck may last
    for as long as their processes live."""
    return LIFELONG if pairs < SURE_PAIRS else 0.0


def settle(
    plain: GateEstimate, weighted: GateEstimate, threshold: float, look: InterimLook, error_rate: float = ERROR_RATE
) -> tuple[GateEstimate, Answer]:
    """What is known, and the estimate that it rests on; `regression` is slower, `improvement` faster.

    As in `decide.settle`, calm pairs are enough to call a slowdown from five pairs on, and for nothing else: an edit
    that stalls now and then is fast in the calm ones. `threshold` and values are logs; `error_rate` is that of both
    directions together.
    """
    if plain.pairs < LEAST_PAIRS:
        if abs(plain.mean) - plain.half_width(SHOWN[0][1]) <= FAR:
            return plain, "cannot_tell"
        return plain, "regression" if plain.mean > 0 else "improvement"
    if abs(plain.mean) + plain.half_width(PASSING_RATE * look.share) < threshold:
        return plain, "unchanged"
    few, rate = plain.pairs < SURE_PAIRS, error_rate / 2 * look.share
    slower = plain if few else weighted
    if slower.mean - slower.half_width(rate) > bar(plain.pairs):
        return slower, "regression"
    faster = plain.mean + plain.half_width(rate) < -bar(plain.pairs)
    return plain, "improvement" if faster else "cannot_tell"


def known_well(change: float, low: float, high: float) -> bool:
    """Whether an interval that lies on one side of no change is narrow enough to act on. Logs of ratios."""
    near = min(abs(low), abs(high))
    left = math.exp(-near) - math.exp(change) if change < 0 else math.inf
    return near >= LEAST_KEPT * abs(change) and (abs(change) - near <= -math.log(LEAST_PART) or left <= TIME_LEFT)


def smallest(
    seen: GateEstimate, threshold: float, most_pairs: int, *, fixed: bool = False, error_rate: float = ERROR_RATE
) -> float | None:
    """The smallest change that would have been called faster or slower nine times in ten, in the unit of the values.

    As `decide.smallest`; nothing within the threshold is ever called so.
    """
    beyond = decide.seen_beyond(seen, most_pairs, error_rate / 2, fixed=fixed)
    return None if beyond is None else max(threshold, bar(max(seen.pairs, most_pairs)) + beyond)


def futility(
    seen: GateEstimate,
    threshold: float,
    most_pairs: int,
    *,
    weighted: GateEstimate,
    fixed: bool = False,
    error_rate: float = ERROR_RATE,
) -> Futility | None:
    """What `most_pairs` would show of an edit, as `futility.futility` has it. None: there is no room for a claim."""
    return looked_at(
        seen,
        threshold,
        most_pairs,
        floor=lambda each, pairs: floor(each, pairs, fixed=fixed),
        chance=min(1.0, _chance(seen, weighted, threshold, most_pairs, error_rate)),
    )


def floor(seen: GateEstimate, most_pairs: int, *, fixed: bool = False) -> float | None:
    """The least threshold within which nothing can be told to lie, nine times in ten: there are two sides to miss."""
    return decide.seen_beyond(seen, most_pairs, PASSING_RATE, fixed=fixed, power=(1 + POWER) / 2)


def pairs_wanted(
    seen: GateEstimate, threshold: float, *, fixed: bool = False, error_rate: float = ERROR_RATE
) -> int | None:
    """How many pairs would tell nine times in ten, if the edit is worth what it seems to be, and pairs go on to differ
    as they do; None where not even the most would."""
    for pairs in range(max(LEAST_PAIRS, seen.pairs + 1), decide.most_looked_at() + 1):
        beyond = decide.seen_beyond(seen, pairs, error_rate / 2, fixed=fixed)
        if beyond is not None and abs(seen.mean) > max(bar(pairs) + beyond, threshold):
            return pairs
        inside = floor(seen, pairs, fixed=fixed)
        if inside is not None and abs(seen.mean) + inside <= threshold:
            return pairs
    return None


def _chance(seen: GateEstimate, weighted: GateEstimate, threshold: float, most_pairs: int, error_rate: float) -> float:
    """That of any answer: slower, faster, or neither."""
    over, rate = bar(most_pairs), error_rate / 2
    coming, calm = prospect(seen, most_pairs), prospect(weighted, most_pairs)
    if coming is None or calm is None:
        return 0.0
    slower = max(each.above(over + each.half_width(rate)) for each in (coming, calm))
    faster = coming.below(-over - coming.half_width(rate))
    inside = threshold - coming.half_width(PASSING_RATE)
    return slower + faster + (1 - coming.above(inside) - coming.below(-inside) if inside > 0 else 0.0)
