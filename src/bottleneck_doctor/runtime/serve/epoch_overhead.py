"""What starting an epoch costs, computed from the beginning of a window. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

QUEUE_CHANGE_SHARE = 0.02


@dataclass(frozen=True)
class LeadIn:
    """The beginning of an epoch, which is a window's lead-in. In seconds: all of it, the making of the iterator (and
    the start of its `workers`), and the wait for each batch."""

    seconds: float
    opening: float
    waits: Sequence[float]
    workers: int


def epoch_overhead(lead: LeadIn, *, steps: int, seconds: float, waited: float, queue_change: int) -> float:
    """Seconds that starting an epoch costs beyond its steps, from its lead-in and the `steps` timed steps after it.

    This is the time for making the iterator, and the wait for the first batches beyond the wait that every step has.
    Computing does not count: the first steps after a change may select kernels, compile, or be slowed by others.

    Slow computing may hide waiting, because workers go on meanwhile. It hardly hides the first round, one batch of each
    worker. So if that wait is longer, it counts instead, but by no more than the lead-in's computing was too slow. One
    result may be below 0 by chance; the mean over windows hardly is.
    """
    # A queue that ran down tells that steps were kept from waiting by batches that were made before they were timed.
    drained = min(-queue_change, steps - 1) if queue_change < -queue_tolerance(steps) else 0
    step = seconds / (steps - drained)
    computing = (seconds - waited) / steps
    wait = max(0.0, step - computing)
    waiting, first = (sum(waits) - len(waits) * wait for waits in (lead.waits, lead.waits[: lead.workers]))
    computed = lead.seconds - lead.opening - sum(lead.waits)
    # Less than a step of it is chance as often as not, and worth nothing.
    hidden = computed - len(lead.waits) * computing - step if lead.workers else 0.0
    return lead.opening + waiting + max(0.0, min(first - waiting, hidden))


def queue_tolerance(steps: int) -> float:
    """By how many batches the queue may change in so many steps, without the steps having been served from it."""
    return max(1.0, QUEUE_CHANGE_SHARE * steps)
