"""How batches come to a loop: how long steps wait for them, and how much faster they could come. Pure.

This is known from the first window that explains, before anything is compared. Since it is a single short window, all
conclusions have a margin and rest on two observations: that steps do not wait, and that a batch is made in a small part
of the time in which it is used. The first alone could come from a queue that was filled before.
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
"""Steps hardly wait if that takes less than this part of the time: half of the gain worth trying for."""
TOO_LITTLE = 0.019
"""If waiting and the starts of epochs take less than this part of the time together, faster loading brings less than is
worth trying: training without both would be less than 1.02 times as fast."""
SMALL = 0.05
"""If waiting takes less than this part of the time, no loading brings much."""
WAITING = 0.15
"""If waiting for batches takes this part of the time or more, faster loading promises more than faster computing."""
AMPLE = 0.5
"""Workers that need at most this part of the time to keep up have enough reserve for batches that take longer."""
MOSTLY = 0.5
"""Making a batch counts as computing if computing takes this part of it or more."""


@dataclass(frozen=True, kw_only=True)
class Supply:
    """How batches come to the training as written. Shares are parts of the time, from 0 to 1.

    `wait`: share spent waiting for batches. `epoch_start`: share spent starting epochs. `step`: seconds of a step.
    `batch`: seconds in which one process makes a batch, rather too many than too few; None if that was not seen.
    `workers`: how many make batches; 0 if the training process does. `drained`: whether steps used up batches that were
    made before the window. `computes`: whether making a batch is mostly computing, not waiting for files, as far as was
    seen. `crowded`: whether workers and training together have more threads than there are CPUs.
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
        """Seconds of a step without waiting."""
        return self.step * (1.0 - self.wait)

    def use(self, workers: int) -> float:
        """Part of the time that this many workers are busy in order to keep up; infinite if that was not seen."""
        if self.batch is None or workers == 0 or self.computing <= 0:
            return math.inf
        return self.batch / (workers * self.computing)

    @property
    def keeps_up(self) -> bool:
        """Whether steps hardly wait for the next batch, and would hardly wait in a longer window either."""
        held = self.workers == 0 or (self.use(self.workers) <= AMPLE and not self.drained)
        return self.wait < HARDLY and held

    @property
    def no_reason(self) -> bool:
        """Whether faster loading can't pay: neither steps nor the starts of epochs wait for batches."""
        return self.keeps_up and self.waiting < TOO_LITTLE

    @property
    def waiting(self) -> float:
        """Part of the time spent waiting for batches, in an epoch and where one starts."""
        return self.wait + self.epoch_start

    @property
    def crowding(self) -> float:
        """The largest part of the time that workers can cost by taking CPUs from computing. At worst it is all of the
        time that a batch takes, if an operation waits for the one thread whose CPU a worker has."""
        if not self.crowded or self.workers == 0:
            return 0.0
        return 1.0 if self.batch is None else self.batch / self.step

    @property
    def bound(self) -> bool:
        """Whether a step is almost only waiting, by its waiting time and by the time that a batch takes to be made."""
        made = self.step if self.workers == 0 else (self.batch or 0.0) / self.workers
        return 1.0 - self.wait < HARDLY and made > (1.0 - HARDLY) * self.step

    def settled_after(self, loading: Loading) -> int | None:
        """Steps after which the queue is full and stays so, if batches are made as `loading` says. None if that is not
        known, or if steps would wait for batches."""
        if loading.workers == 0:
            return 0
        use = self.use(loading.workers)
        if not self.keeps_up or use > AMPLE:
            return None
        # The queue fills by the batches that workers make beyond those that are used meanwhile.
        return math.ceil(loading.depth * use / (1.0 - use))


def seen(window: Window, made: Made | None, found: Found, epoch_batches: int | None) -> Supply | None:
    """The supply that a window of the training as written shows. `made`: how batches were made in it. None if no loader
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
