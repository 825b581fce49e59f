"""How many steps a process makes until its script ends, and what fits into them. Pure.

Processes that are measured side by side all have to be alive. If one comes to its end before each has shown a few
windows, all of them were started for nothing. So windows are short where a life is.
"""

from __future__ import annotations

from bottleneck_doctor.measure.schedule import LEAST_TOLD_STEPS, PLAIN_LEAD_IN
from bottleneck_doctor.runtime.wire.messages import Ended, Found

PAIRED = 4
"""Windows of one process of a pair: one that warms it up, two that count, and one to spare."""
EXAMINED = 12
"""Windows in which the first process of an examination shows what is worth trying, and tries a few settings."""
LONGER = 1.5
"""A process that has steps for so many times as many usual windows has enough of them: warming up may take three."""


def told(found: Found) -> int | None:
    """Steps that a process has before it when its loop is found, as the program says itself; None if it does not."""
    return None if found.run_ends is None else found.run_ends - found.position


def seen(found: Found, farewell: Ended) -> int:
    """Steps that a process made from there to the end of its script."""
    if found.has_loader:
        return max(0, farewell.batches - found.position)
    return max(0, max(farewell.optimizer_steps, farewell.backwards) - found.position)


def least(*known: int | None) -> int | None:
    """The least of those that are known."""
    return min((each for each in known if each is not None), default=None)


def most_steps(left: int | None, window: int, windows: int) -> int | None:
    """Timed steps that each of so many `windows` may have at most, if a process has `left` steps before it and a usual
    window takes `window` of them; None: as many as usual."""
    if left is None or left >= LONGER * windows * window:
        return None
    return timed(left, windows)


def timed(left: float, windows: int) -> int:
    """Timed steps of each of so many `windows` that `left` steps hold together, with their lead-ins. Two at least."""
    return max(LEAST_TOLD_STEPS, int(left / windows) - PLAIN_LEAD_IN)


def rounds(left: int | None, trained: int, window: int) -> int | None:
    """Windows of so many steps that a process can still make, with one to spare for a look at its memory; None if
    nobody knows. `trained`: steps that it has made since `left` were before it."""
    return None if left is None else max(0, (left - trained) // max(1, window) - 1)
