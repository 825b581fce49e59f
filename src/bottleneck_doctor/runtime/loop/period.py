"""The period of a loop: the smallest number of steps after which its work repeats. Pure.

It shows in what happens between steps or, if all steps look alike, in how long they take: reinforcement learning
collects rollouts for a while, and then makes a number of optimizer steps at once.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any, List, Optional, Sequence, Tuple

Signature = Tuple[Any, ...]
"""What happened between one batch and the next: optimizer steps by optimizer, scaler steps, backwards."""

MINIMUM_STEPS = 6
"""With fewer steps than this, nothing can be said about a period."""
TIMES_ALIKE = 3
"""A period must have been seen so many times."""


def batches_needed(signatures: Sequence[Signature], event: str) -> int:
    """How many batches show a period: `MINIMUM_STEPS`, or fewer where one optimizer makes several steps with each.

    `event`: the kind of event that is a step. Its identities are counted apart: a step of each of two networks tells
    nothing of the next batch, in which one of them may rest.
    """
    last = signatures[-TIMES_ALIKE:]
    steps = min((max((each.count(one) for one in each if one[0] == event), default=0) for each in last), default=0)
    return max(TIMES_ALIKE, math.ceil(MINIMUM_STEPS / max(1, steps)))


def find_period(signatures: Sequence[Signature], *, longest: int = 64, at_least: int = MINIMUM_STEPS) -> Optional[int]:
    """The smallest p after which the sequence repeats, at least three times at its end; None if there is none.

    The first entries may differ from the rest (warm-up), so only the last 3·p (but `at_least` so many) are compared.
    """
    count = len(signatures)
    for period in range(1, min(longest, count // TIMES_ALIKE) + 1):
        span = max(TIMES_ALIKE * period, at_least)
        if count < span:
            return None
        tail = signatures[count - span :]
        if all(tail[i] == tail[i - period] for i in range(period, span)):
            return period
    return None


LEAST_GROWTH = 0.5
"""The log of a step's time must grow by this part of the log of its calls: then most of its work is that of calls."""
LEAST_FIT = 0.5
"""Part of the spread of step times that the numbers of calls must explain."""
LEAST_SPREAD = 0.1
"""Calls differ from step to step if their logs have at least this standard deviation."""


def goes_by_calls(gaps: Sequence[float], calls: Sequence[int]) -> bool:
    """Whether steps take long because the model is called often in them, as where each is an episode of its own length.

    `gaps`: seconds from each step to the next, in order. `calls`: how often the model was called in each.
    """
    seen = list(zip(gaps, calls))[WARM_UP:]
    if len(seen) < MINIMUM_STEPS or any(gap <= 0 or count <= 0 for gap, count in seen):
        return False
    counts = [count for _, count in seen]
    if 2 * max(map(counts.count, counts)) >= len(counts):
        return False  # Most steps are alike, and rollouts lie between some of them.
    y, x = _about_mean([math.log(gap) for gap, _ in seen]), _about_mean([math.log(count) for _, count in seen])
    xx, xy, yy = (math.fsum(a * b for a, b in zip(*pair)) for pair in ((x, x), (x, y), (y, y)))
    if xx < len(seen) * LEAST_SPREAD**2:
        return False
    return xy > LEAST_GROWTH * xx and xy * xy > LEAST_FIT * xx * yy


def _about_mean(values: Sequence[float]) -> List[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


AHEAD = 2
"""Batches at the start of an epoch before which other work shows than before the rest, if a loop asks for one ahead:
all that was left of the epoch before, and then none."""


def repeats_within_epochs(epochs: Sequence[Sequence[Signature]]) -> bool:
    """Whether every batch is trained on in the same way, in a loop that asks for batches ahead. Short epochs of such a
    loop end before `find_period` has seen them three times.

    `epochs`: what happened before each batch, oldest epoch first; the last one may be unfinished. It takes
    `MINIMUM_STEPS` batches of two epochs at least that look alike, and a whole epoch with one such step for each batch.
    """
    inner = [list(epoch[AHEAD:]) for epoch in epochs]
    steps = [entry for each in inner for entry in each]
    if len(steps) < MINIMUM_STEPS or sum(map(bool, inner)) < 2 or not steps[0]:
        return False
    if any(entry != steps[0] for entry in steps):
        return False
    for epoch, following in zip(epochs, epochs[1:]):
        work = [event for entry in (*epoch[1:], following[0]) for event in entry]
        if sorted(work) == sorted(steps[0] * len(epoch)):
            return True
    return False


LONG = 4.0
"""A gap between two steps that is this many times as long as most gaps contains other work."""
LEAST_SHARE = 0.1
"""Such gaps matter if together they take at least this share of the time."""
LEAST_EXPLAINED = 0.8
"""In a rhythm, at least this share of their time comes at regular steps; the rest are stalls of the machine."""
ALIKE = 0.3
"""The shortest of the gaps at one place must be at least this share of the longest."""
SURE_STEPS = 32
"""A rhythm must have held for this many steps, because a short one may come about by chance."""
WARM_UP = 2
"""The first gaps may contain compilation and other work that is done once."""


def find_rhythm(gaps: Sequence[float]) -> Optional[int]:
    """Steps after which long gaps come again, seen at least three times over at the end; None without such a rhythm.

    `gaps`: seconds from each step to the next, in order.
    """
    places = _long(gaps)
    if len(places) < 3:
        return None
    distances = {late - early for late in places[-3:] for early in places[-64:] if early < late}
    for period in sorted(distances):
        turns = max(3, math.ceil(SURE_STEPS / period))
        if period >= 2 and period * turns <= len(gaps) and _keeps_time(gaps[len(gaps) - period * turns :], period):
            return period
    return None


def _keeps_time(gaps: Sequence[float], period: int) -> bool:
    """Whether the long ones of whole periods of gaps come at the same places of each, about as long each time."""
    least = LONG * median(gaps)
    turns = [gaps[place::period] for place in range(period)]
    beats = [turn for turn in turns if min(turn) > max(least, ALIKE * max(turn))]
    in_time = sum(map(sum, beats))
    all_long = sum(gap for gap in gaps if gap > least)
    return in_time > LEAST_SHARE * sum(gaps) and in_time >= LEAST_EXPLAINED * all_long


def long_gaps(gaps: Sequence[float]) -> int:
    """How many gaps are so long that they contain other work; 0 if they take no noticeable time together."""
    gaps = gaps[WARM_UP:]
    places = _long(gaps)
    return len(places) if sum(gaps[place] for place in places) > LEAST_SHARE * sum(gaps) else 0


def _long(gaps: Sequence[float]) -> List[int]:
    least = LONG * median(gaps) if gaps else 0.0
    return [place for place, gap in enumerate(gaps) if gap > least]
