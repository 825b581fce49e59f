"""How much time an examination has, what of it is spent, and by when all of it has to be over. Pure but for `now`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


class OutOfTime(Exception):
    """The budget is spent."""


@dataclass
class Clock:
    """Time spent and left, in seconds. `strict`: the user set the budget, and nothing comes on top of it.

    `budget` is what may be spent on measuring; what explaining may take is set apart from it. `ends`: the moment at
    which whatever still runs is ended, so that there is time to write down what was learnt. `total`: what all of it
    may take from the start on, as the user is told; None as long as that is not known. It never changes after that.
    """

    budget: float
    strict: bool
    started: float = field(default_factory=time.monotonic)
    free: float = 0.0
    ends: float = math.inf
    total: float | None = None
    now: Callable[[], float] = time.monotonic

    def spent(self) -> float:
        """Seconds of `budget` that are gone."""
        return self.now() - self.started - self.free

    def left(self) -> float:
        """Seconds that may still be spent on what is going on now."""
        return min(self.budget - self.spent(), self.until_end())

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.now() - self.started

    def until_end(self) -> float:
        """Seconds until whatever runs is ended."""
        return self.ends - self.now()

    def limit(self, total: float, ending: float) -> None:
        """All of it takes `total` seconds from the start on, the last `ending` of them for writing it down."""
        self.total = total
        self.ends = self.started + total - ending
