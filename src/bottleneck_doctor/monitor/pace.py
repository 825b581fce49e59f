"""How often something may be read, given the cost of reading it. This keeps the monitor within its share of a core.

A fixed rate would be cheap on one machine and expensive on another with many processes, CPUs or GPUs.
"""

from __future__ import annotations


class Pace:
    """A reading is due every `least` seconds, or less often if its cost would exceed `share` of one core."""

    def __init__(self, least: float, share: float) -> None:
        self.least = least
        self._share = share
        self._next = 0.0

    def due(self, now: float) -> bool:
        return now >= self._next

    def wait(self, now: float) -> float:
        """Seconds until it is due."""
        return max(0.0, self._next - now)

    def spent(self, now: float, cpu_seconds: float) -> None:
        """Note that it was read at `now`, which took `cost` seconds of CPU time."""
        # Keep to multiples of `least` if possible, so that late wake-ups do not add up.
        on_time = self._next + self.least
        wanted = on_time if now < on_time <= now + self.least else now + self.least
        self._next = max(wanted, now + cpu_seconds / self._share)
