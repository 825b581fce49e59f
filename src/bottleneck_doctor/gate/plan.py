"""Plans the time of a pair of processes: how many windows, in which order. Pure; takes a random generator."""

from __future__ import annotations

import math
import random
from typing import Literal

from bottleneck_doctor.gate.decide import LEAST_PAIRS
from bottleneck_doctor.measure import side_pairs

Name = Literal["base", "head"]

WINDOW_SECONDS = 0.7
"""The intended length of a window's timed part. Processes differ more than windows do, so windows are short and pairs
many."""
LEAST_ROUNDS, MOST_ROUNDS = side_pairs.LEAST_ROUNDS, 10
MOST_AGAIN = 4
"""Rounds that follow, at most, where other programs disturbed those that were planned."""
USUAL_SECONDS = 4.0
"""What the windows of a pair take together if starting takes less than that."""
BESIDE_PAIRS = 1.15
"""How many times as long as its pairs a check takes, with what checking out and starting take."""
PAIRS_WANTED = 8
"""This many pairs should fit, unless fewer are asked for. So a slow script first gets fewer windows a pair, and only
then fewer pairs."""

LONGEST_SHARE = 1.3
"""How many times its share of the time a pair may take before it ends with fewer rounds than planned."""


def rounds(setup_seconds: float, window_seconds: float, budget: float, pairs: int = PAIRS_WANTED) -> int:
    """The number of rounds, with one window of each side, in a pair whose start takes `setup_seconds`. `pairs`: how
    many should fit into the budget.

    After a long start, it pays to measure for as long, if enough pairs still fit into the budget.
    """
    both = max(1e-6, 2 * window_seconds)
    wanted = math.ceil(max(USUAL_SECONDS, setup_seconds) / both)
    room = math.floor((budget / pairs - setup_seconds) / both)
    return max(LEAST_ROUNDS, min(wanted, room, MOST_ROUNDS))


def goes_on(number: int, lasted: float, measuring: float, share: float, pairs: int = PAIRS_WANTED) -> bool:
    """Whether a pair goes on after `number` rounds, which took `measuring` of the seconds that it has `lasted`. Its
    `share` is the seconds that it may take, if so many `pairs` are to fit. It may be exceeded where a claim needs
    fewer.

    Windows may take longer than planned, as where both sides train on to come to the same step, and a pair that is too
    long leaves no time for others. After even numbers only, so that each side has gone first as often. Only the time
    decides.
    """
    if number < LEAST_ROUNDS or number % 2:
        return True
    longest = LONGEST_SHARE if pairs > LEAST_PAIRS else 1.0
    return lasted + 2 * measuring / number <= longest * share


def order(count: int, generator: random.Random) -> list[tuple[Name, Name]]:
    """Which side goes first in each round: chosen at random, and reversed in every second round.

    So drift of the machine cancels over two rounds, and nothing periodic can keep in step with the order.
    """
    made: list[tuple[Name, Name]] = []
    while len(made) < count:
        first: tuple[Name, Name] = ("base", "head") if generator.random() < 0.5 else ("head", "base")
        made += [first, (first[1], first[0])]
    return made[:count]


def another_fits(pair_seconds: float, left: float) -> bool:
    """Whether there is time for one more pair."""
    return left >= pair_seconds


def minutes_for(pairs: int, pair_seconds: float) -> int:
    """Minutes, in whole ones, that a check of so many pairs takes, or of so many processes."""
    return max(1, math.ceil(BESIDE_PAIRS * pairs * pair_seconds / 60))


def enough_minutes(pair_seconds: float, budget: float) -> int:
    """The same for as many as a claim needs, where the seconds of a `budget` did not do."""
    return max(minutes_for(LEAST_PAIRS, pair_seconds), 1 + math.floor(budget / 60))


def room_for(pairs: int, pair_seconds: float, left: float) -> int:
    """The number of pairs that there will have been when the time is over."""
    return pairs + max(0, math.floor(left / max(1e-6, pair_seconds)))
