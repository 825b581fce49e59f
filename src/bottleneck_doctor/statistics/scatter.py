"""How much values scatter from one to the next, whatever their trend. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean


def scatter(values: Sequence[float]) -> float:
    """The standard deviation of values around their trend, from the differences of neighbours, which hold nearly
    nothing of the trend; 0 where there are fewer than three."""
    if len(values) < 3:
        return 0.0
    squares = [(after - before) ** 2 for before, after in pairwise(values)]
    return math.sqrt(fmean(squares) / 2)
