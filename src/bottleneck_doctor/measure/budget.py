"""How much time there is, how much of it is spent, and when everything has to be over. Pure except for `now`.

A `Budget` is time that may be spent on measuring. An `Allowance` is time reserved for something else. Both are in
seconds, and only this module writes their fields.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator


class OutOfTime(Exception):
    """The budget is spent."""


class NotBegun(OutOfTime):
    """What is left of the budget is too little for what was to begin, so that nothing is under way."""


class Budget:
    """Time to measure: `seconds` from now on. `strict`: the user set it, and nothing may be added to it. `total`: see
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
        """Seconds that were added to it by `extend` and `postpone`."""
        return self._extended

    @property
    def seconds(self) -> float:
        """Seconds that may be spent on measuring, counted from the start."""
        return self._seconds

    @property
    def strict(self) -> bool:
        """Whether the user set it."""
        return self._strict

    @property
    def total(self) -> float | None:
        """Seconds that everything may take, counted from the start, as shown to the user; None until it is known."""
        return self._total

    def now(self) -> float:
        """The time on this budget's clock, in seconds."""
        return self._now()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.now() - self._started

    def spent(self) -> float:
        """Seconds of the budget that are spent."""
        return self.now() - self._started - self._free

    def left(self) -> float:
        """Seconds that may still be spent on the current work."""
        return min(self._seconds - self.spent(), self.until_end())

    def until_end(self) -> float:
        """Seconds until whatever runs has to end, so that there is time to write down what was learnt."""
        return self._ends - self.now()

    def end_by(self, total: float, ending: float) -> None:
        """Set the end: everything takes `total` seconds from the start; the last `ending` of them are for writing."""
        self._total = total
        self._ends = self._started + total - ending

    def extend(self, seconds: float) -> None:
        """Add `seconds` to measuring, and move the end by as much."""
        self._seconds += seconds
        self.postpone(seconds)

    def postpone(self, seconds: float) -> None:
        """Move the end by `seconds`, and add nothing to measuring: what has time of its own takes longer."""
        self._extended += seconds
        self._ends += seconds
        if self._total is not None:
            self._total += seconds

    def forgive(self, seconds: float) -> None:
        """Don't count `seconds` of the time that has passed."""
        self._free += seconds

    def reserve(self, seconds: float, *, inside: bool | None = None) -> Allowance:
        """Reserve time for something else: taken from this budget if `inside`, on top of it otherwise. By default, it
        is taken from the budget if the user set it."""
        inside = self._strict if inside is None else inside
        if inside:
            self._seconds -= seconds
        return Allowance(self, seconds, inside=inside)

    def patient(self) -> Budget:
        """A budget for windows that are waited for even after this one ends: twice as long, or endless if the user set
        none."""
        made = Budget(2 * self._seconds if self._strict else math.inf, strict=False, now=self._now)
        made._started = self._started
        return made


class Allowance:
    """Time that was reserved. Spending it leaves the budget as it is."""

    def __init__(self, budget: Budget, seconds: float, *, inside: bool) -> None:
        self._budget = budget
        self._inside = inside
        self._seconds = seconds
        self._spent = 0.0
        self._charging = False

    @property
    def seconds(self) -> float:
        """Seconds that were reserved, including what is spent."""
        return self._seconds

    def left(self) -> float:
        """Seconds that are not spent yet."""
        return max(0.0, min(self._seconds - self._spent, self._budget.until_end()))

    def room(self, seconds: float) -> bool:
        """Whether `seconds` are left. While this allowance is being spent, only the end of everything limits it."""
        return seconds <= self._budget.until_end() and (self._charging or self._spent + seconds <= self._seconds)

    @contextlib.contextmanager
    def charged(self) -> Iterator[None]:
        """Time spent inside this context counts for the allowance and not for the budget. Contexts may be nested."""
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
        """Inside this context, the budget may use what is left of the allowance; what it does not use comes back."""
        budget, lent = self._budget, self.left()
        budget._seconds += lent
        try:
            yield
        finally:
            back = max(0.0, min(lent, budget.left()))
            budget._seconds -= back
            self._seconds = self._spent + back

    def inherit(self) -> None:
        """Take over what is left of the budget, because nothing more is measured or nothing fits the time."""
        left = max(0.0, self._budget.left())
        self._seconds += left
        self._budget._seconds -= left

    def give_back(self) -> None:
        """Nothing more is spent on this: what is left goes back to the budget if it was taken from there."""
        left, self._seconds = self.left(), self._spent
        if self._inside:
            self._budget._seconds += left
