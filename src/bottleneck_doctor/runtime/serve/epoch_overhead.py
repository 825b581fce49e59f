"""What starting an epoch costs, computed from the beginning of a window. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

QUEUE_CHANGE_SHARE = 0.02


@dataclass(frozen=True)
class LeadIn:
    """The beginning of an epoch, which a window leads in with. Seconds: all of it, of making the iterator (and starting
    its `workers`), and of waiting for each batch."""

    seconds: float
    opening: float
    waits: Sequence[float]
    workers: int


def epoch_overhead(lead: LeadIn, *, steps: int, seconds: float, waited: float, queue_change: int) -> float:
    """Seconds that starting an epoch costs beyond its steps, from its lead-in and the `steps` timed ones behind it.

    It is what was spent on making the iterator, and on waiting for the first batches beyond the waiting that every step
    has. Computing is no part of it: the first steps after a change may pick kernels, compile, or have a neighbour.

    Slow computing may hide waiting, as workers go on meanwhile. What it hardly hides is the first round, one batch of
    each worker; so that counts instead where it says more, up to what the lead-in's computing was too slow by. May come
    out below 0 by chance, as the mean over windows hardly does.
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
    """Batches by which the queue may change in so many steps without the steps having lived on it."""
    return max(1.0, QUEUE_CHANGE_SHARE * steps)
