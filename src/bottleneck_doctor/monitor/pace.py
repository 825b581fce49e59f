"""How often something may be read, given what reading it costs: the reason why the monitor keeps its promise.

A fixed rate would be cheap on one machine and dear on another, where processes, CPUs or GPUs are many.
"""

from __future__ import annotations


class Pace:
    """Due every `least` seconds, or as seldom as keeps its cost within `share` of one core."""

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
        """It was read at `now`, and that took so much CPU time."""
        # On the grid of `least` where that can be held: being woken late, or asked in steps, must not add up.
        on_time = self._next + self.least
        wanted = on_time if now < on_time <= now + self.least else now + self.least
        self._next = max(wanted, now + cpu_seconds / self._share)
