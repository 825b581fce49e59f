"""How much time there is, what of it is spent, and by when all of it has to be over. Pure but for `now`.

A `Budget` is what may be spent on measuring. An `Allowance` is time that was set apart from it, for something else.
Both are in seconds, and nobody else writes what they hold.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator


class OutOfTime(Exception):
    """The budget is spent."""


class Budget:
    """Time to measure: `seconds` from now on. `strict`: the user set it, and nothing comes on top of it. `total`: as
    the property."""

    def __init__(
        self, seconds: float, *, strict: bool, total: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._strict = strict
        self._now = now
        self._started = now()
        self._free = 0.0
        self._ends = math.inf
        self._total = total
        self._extended = 0.0

    @property
    def extended(self) -> float:
        """Seconds by which it was extended."""
        return self._extended

    @property
    def seconds(self) -> float:
        """What may be spent on measuring, from the start on."""
        return self._seconds

    @property
    def strict(self) -> bool:
        """Whether the user set it."""
        return self._strict

    @property
    def total(self) -> float | None:
        """What all of it may take from the start on, as the user is told; None as long as that is not known."""
        return self._total

    def now(self) -> float:
        """The moment, by the clock that this goes by."""
        return self._now()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.now() - self._started

    def spent(self) -> float:
        """Seconds of the budget that are gone."""
        return self.now() - self._started - self._free

    def left(self) -> float:
        """Seconds that may still be spent on what is going on now."""
        return min(self._seconds - self.spent(), self.until_end())

    def until_end(self) -> float:
        """Seconds until whatever runs is ended, so that there is time to write down what was learnt."""
        return self._ends - self.now()

    def end_by(self, total: float, ending: float) -> None:
        """All of it takes `total` seconds from the start on, the last `ending` of them for writing it down."""
        self._total = total
        self._ends = self._started + total - ending

    def extend(self, seconds: float) -> None:
        """So many seconds more to measure, and until all of it is over."""
        self._seconds += seconds
        self._extended += seconds
        self._ends += seconds
        if self._total is not None:
            self._total += seconds

    def forgive(self, seconds: float) -> None:
        """So many of those that are gone are on nobody's bill."""
        self._free += seconds

    def reserve(self, seconds: float, *, inside: bool | None = None) -> Allowance:
        """Set time apart: out of this budget if the user set it, else on top, unless `inside` says which."""
        inside = self._strict if inside is None else inside
        if inside:
            self._seconds -= seconds
        return Allowance(self, seconds, inside=inside)

    def patient(self) -> Budget:
        """One for windows that are waited for even where this budget ends: twice as much, and no end where the user set
        none."""
        made = Budget(2 * self._seconds if self._strict else math.inf, strict=False, now=self._now)
        made._started = self._started
        return made


class Allowance:
    """Time set apart from a budget, which what is spent on it does not touch."""

    def __init__(self, budget: Budget, seconds: float, *, inside: bool) -> None:
        self._budget = budget
        self._inside = inside
        self._seconds = seconds
        self._spent = 0.0
        self._charging = False

    @property
    def seconds(self) -> float:
        """All of it, what is spent of it included."""
        return self._seconds

    def left(self) -> float:
        """Seconds of it that are not spent."""
        return max(0.0, min(self._seconds - self._spent, self._budget.until_end()))

    def room(self, seconds: float) -> bool:
        """Whether so many seconds are left; where it is being spent, until the end of all."""
        return seconds <= self._budget.until_end() and (self._charging or self._spent + seconds <= self._seconds)

    @contextlib.contextmanager
    def charged(self) -> Iterator[None]:
        """Time spent in here is spent on this, and not on the budget. May be entered again inside."""
        if self._charging:
            yield
            return
        budget = self._budget
        begun, left = budget.now(), self._seconds - self._spent
        self._charging = True
        budget._free += left
        try:
            yield
        finally:
            self._charging = False
            used = budget.now() - begun
            self._spent += used
            budget._free += used - left

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """What is left of it serves measuring in here; what that does not take comes back."""
        budget, lent = self._budget, self.left()
        budget._seconds += lent
        try:
            yield
        finally:
            back = max(0.0, min(lent, budget.left()))
            budget._seconds -= back
            self._seconds = self._spent + back

    def inherit(self) -> None:
        """Nothing more is to be measured, or nothing fits the time: what that leaves of the budget goes to this."""
        left = max(0.0, self._budget.left())
        self._seconds += left
        self._budget._seconds -= left

    def give_back(self) -> None:
        """Nothing more is to be spent on this: what is left goes to measuring, if it was taken from there."""
        left, self._seconds = self.left(), self._spent
        if self._inside:
            self._budget._seconds += left
