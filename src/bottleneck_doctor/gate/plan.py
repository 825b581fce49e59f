"""How a pair of processes spends its time: how many windows, in which order. Pure, takes a random generator."""

from __future__ import annotations

import math
import random
from typing import Literal

Name = Literal["base", "head"]

WINDOW_SECONDS = 0.7
"""What a window's timed part aims at. Processes differ more than windows do, so windows are short and pairs many."""
LEAST_ROUNDS, MOST_ROUNDS = 2, 10
USUAL_SECONDS = 6.0
"""What the windows of a pair take together where starting takes less."""
PAIRS_WANTED = 8
"""As many pairs should fit: a slow script gets fewer windows a pair before it gets fewer pairs."""


def rounds(setup_seconds: float, window_seconds: float, budget: float) -> int:
    """Rounds of a window of each side in a pair whose start takes `setup_seconds`.

    A start that takes long is worth as much measuring, as long as enough pairs fit into the budget.
    """
    both = max(1e-6, 2 * window_seconds)
    wanted = math.ceil(max(USUAL_SECONDS, setup_seconds) / both)
    room = math.floor((budget / PAIRS_WANTED - setup_seconds) / both)
    return max(LEAST_ROUNDS, min(wanted, room, MOST_ROUNDS))


def order(count: int, generator: random.Random) -> list[tuple[Name, Name]]:
    """Who goes first in each round: by chance, and then turned round in every second one.

    So drift of the machine cancels in two rounds, and nobody can be in step with it.
    """
    made: list[tuple[Name, Name]] = []
    while len(made) < count:
        first: tuple[Name, Name] = ("base", "head") if generator.random() < 0.5 else ("head", "base")
        made += [first, (first[1], first[0])]
    return made[:count]


def another_fits(pair_seconds: float, left: float) -> bool:
    """Whether there is time for one more pair."""
    return left >= pair_seconds


def room_for(pairs: int, pair_seconds: float, left: float) -> int:
    """How many pairs there will have been when the time is over."""
    return pairs + max(0, math.floor(left / max(1e-6, pair_seconds)))
