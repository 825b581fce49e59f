"""A loader's queue that is made up: batches in order from workers that run ahead, as a DataLoader hands them out."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.runtime.serve.epoch_overhead import queue_tolerance
from bottleneck_doctor.runtime.serve.steady_run import MOST_EXTENSIONS


@dataclass(frozen=True, kw_only=True)
class Fed:
    """A window of steps that a queue fed. Seconds; `change`: batches by which the queue grew in the timed part."""

    lead_in_seconds: float
    steps: int
    seconds: float
    wait_seconds: float
    change: int


class Queue:
    """Batches of `load` seconds each, made by `workers` that start at once and prepare `prefetch` batches each.

    Batch k is made by worker k modulo `workers`, and asked for when batch k - depth is taken.
    """

    def __init__(self, load: float, workers: int, prefetch: int) -> None:
        self.now = 0.0
        self._load = load
        self._workers = workers
        self._depth = workers * prefetch
        self._asked = [0.0] * self._depth
        self._made: list[float] = []
        self._taken = 0

    def take(self) -> float:
        """The next batch; returns the seconds that were waited for it."""
        if self._workers == 0:
            self.now += self._load
            return self._load
        self._asked.append(self.now)  # Asked for as this one is taken; that it may be waited for first changes nothing.
        self._make()
        wait = max(0.0, self._made[self._taken] - self.now)
        self.now += wait
        self._asked[-1] = self.now
        self._taken += 1
        return wait

    def ready(self) -> int:
        """Batches that lie there."""
        self._make()
        return sum(made <= self.now for made in self._made[self._taken :])

    def _make(self) -> None:
        for number in range(len(self._made), self._taken + self._depth):
            free = self._made[number - self._workers] if number >= self._workers else 0.0
            self._made.append(max(free, self._asked[number]) + self._load)


def fed(queue: Queue, compute: float, lead_in: int, steps: int) -> Fed:
    """Steps of `compute` seconds, timed as a steady window of the guest's times them: lengthened where the queue has
    changed by more than its guard allows."""
    for _ in range(lead_in):
        queue.take()
        queue.now += compute
    led, before = queue.now, queue.ready()
    done, wait, extensions, target = 0, 0.0, 0, steps
    while True:
        while done < target:
            wait += queue.take()
            queue.now += compute
            done += 1
        change = queue.ready() - before
        if abs(change) <= queue_tolerance(done) or extensions == MOST_EXTENSIONS:
            break
        extensions += 1
        target += steps
    return Fed(lead_in_seconds=led, steps=done, seconds=queue.now - led, wait_seconds=wait, change=change)
