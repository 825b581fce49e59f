"""How closely tests of time may look: closely on a quiet machine, less so beside neighbours.

`QUIET_MACHINE=1` promises that nothing else runs here, and holds every test to the figures that are published. Without
it tolerances are wider, since a sleep that a neighbour makes longer says nothing of the doctor; what would be wrong by
counting (a step twice, half a period) is outside of them all the same.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

QUIET = bool(os.environ.get("QUIET_MACHINE"))
LOOSE = 1.0 if QUIET else 2.5
"""By how many times what is allowed on a quiet machine may be missed here."""

POINTS = 0.03 * LOOSE
"""How far a share may be off, as a share of the whole."""

LATE = 0.002
"""Seconds that a sleep on a quiet machine ends late at most."""


@dataclass(frozen=True)
class Between:
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def lasting(seconds: float, *, rel: float = 0.0, abs: float = 0.0) -> Between:
    """What something may last that is made of sleeps: hardly less than they ask for, more where others run as well."""
    allowed = rel * seconds + abs
    return Between(seconds - allowed, seconds + LOOSE * allowed)


def times(ratio: float, *, rel: float) -> Between:
    """What a ratio of two such times may be. Neighbours slow either, but don't turn a gain into none."""
    allowed = 1 + LOOSE * rel
    return Between(max(ratio / allowed, 1 + (ratio - 1) / 3), ratio * allowed)


def wait_until_quiet(seconds: float) -> None:
    """Return as soon as sleeps end in time, or after that many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        begun = time.monotonic()
        for _ in range(50):
            time.sleep(0.005)
        if time.monotonic() - begun < 50 * (0.005 + LATE / 4):
            return
        time.sleep(1.0)
