"""How batches come to a loop: what steps wait for them, and how much faster they could come. Pure.

It is known from the first window that explains, before anything is compared. One window, and a short one: so whatever
is taken from it here has a margin, and rests on two things that it saw. That steps did not wait may be owed to a queue
that was filled before; that a batch is made in a small part of the time in which it is used may not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Loading as Made
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.knobs import Loading
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.runtime.wire.messages import Found

HARDLY = 0.01
"""Part of the time below which waiting is no reason to try anything: half of what has to be gained to be worth it."""
AMPLE = 0.5
"""Workers that need no more than this part of the time to keep up have slack enough for a batch that takes longer."""
MOSTLY = 0.5
"""Part of making a batch from which computing is what it is."""


@dataclass(frozen=True, kw_only=True)
class Supply:
    """How the training as written is fed. Shares are parts of the time, from 0 to 1.

    `wait`: spent waiting for batches. `epoch_start`: what starting epochs comes to. `step`: seconds that one takes.
    `batch`: seconds in which one process makes a batch, on the long side; None where nobody saw that. `workers`: who
    make them, 0 where the training process does. `drained`: whether steps lived on batches that were made before.
    `computes`: whether making one is computing for the most part, as far as was seen, and no waiting for files.
    `crowded`: whether workers and who computes may stand in one another's way, having more threads than there are CPUs.
    """

    wait: float
    epoch_start: float
    step: float
    batch: float | None
    workers: int
    drained: bool = False
    computes: bool = True
    crowded: bool = False

    @property
    def computing(self) -> float:
        """Seconds of a step in which it does not wait."""
        return self.step * (1.0 - self.wait)

    def use(self, workers: int) -> float:
        """Part of the time that so many workers are busy in order to keep up; infinite where nobody saw."""
        if self.batch is None or workers == 0 or self.computing <= 0:
            return math.inf
        return self.batch / (workers * self.computing)

    @property
    def keeps_up(self) -> bool:
        """Whether steps hardly wait for the next batch, and would not in a longer window either."""
        held = self.workers == 0 or (self.use(self.workers) <= AMPLE and not self.drained)
        return self.wait < HARDLY and held

    @property
    def no_reason(self) -> bool:
        """Whether faster batches can't pay: steps hardly wait for them, and neither do epochs."""
        return self.keeps_up and self.wait + self.epoch_start < HARDLY

    @property
    def crowding(self) -> float:
        """The largest part of the time that workers can cost by standing in the way of computing: all of what a batch
        takes, where an operation waits for the one thread whose CPU a worker has."""
        if not self.crowded or self.workers == 0:
            return 0.0
        return 1.0 if self.batch is None else self.batch / self.step

    @property
    def bound(self) -> bool:
        """Whether a step is next to nothing but waiting, by what it waited and by how long a batch takes to be made."""
        made = self.step if self.workers == 0 else (self.batch or 0.0) / self.workers
        return 1.0 - self.wait < HARDLY and made > (1.0 - HARDLY) * self.step

    def settled_after(self, loading: Loading) -> int | None:
        """Steps after which the queue is full and stays so, where batches are made as `loading` says; None where that
        cannot be told, or where steps would wait for them."""
        if loading.workers == 0:
            return 0
        use = self.use(loading.workers)
        if not self.keeps_up or use > AMPLE:
            return None
        # It fills by what workers make beyond what is used meanwhile.
        return math.ceil(loading.depth * use / (1.0 - use))


def seen(window: Window, made: Made | None, found: Found, epoch_batches: int | None) -> Supply | None:
    """What a window of the training as written shows, and how batches were made in it (`made`); None where no loader
    feeds the loop, or nothing was timed."""
    if not found.has_loader or not window.steps or window.seconds <= 0:
        return None
    step = window.seconds / window.steps
    start = max(0.0, window.turn_seconds or 0.0)
    tolerance = max(1.0, pairing.QUEUE_TOLERANCE * window.steps)
    return Supply(
        wait=min(1.0, window.wait_seconds / window.seconds),
        epoch_start=start / (start + epoch_batches * step) if epoch_batches else 0.0,
        step=step,
        batch=None if made is None else (made.fetch_p95_ms + made.collate_ms + (made.hand_over_ms or 0.0)) / 1000,
        workers=found.num_workers,
        drained=window.queue_change < -tolerance,
        computes=made is None or made.computing is None or made.computing >= MOSTLY,
        crowded=found.device.startswith("cpu") and found.num_workers + found.threads > found.usable_cpus,
    )
