"""What the engine meets outside of itself: the clock, processes, and what looks at them. A test of an order gives in a
machine that is made up."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bottleneck_doctor.monitor import RunQueue, UsageWatch, memory
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.session.session import Session


@dataclass(frozen=True)
class Outside:
    """This machine's own, unless another one is given.

    `now`: seconds, of which only differences mean something. `peak_bytes`: the most memory that processes have held.
    `free_bytes`: how much memory further ones may have. `kernel_seconds`: for how long the kernel has worked for a
    process. None where that can't be told.
    """

    start_session: Callable[..., Session] = Session
    sampler: Callable[..., PySpySampler] = PySpySampler
    watch: Callable[[int], UsageWatch] = UsageWatch
    run_queue: Callable[[], RunQueue] = RunQueue
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    kernel_seconds: Callable[[int], float | None] = memory.kernel_seconds
    peak_bytes: Callable[[Iterable[int]], int | None] = memory.peak_bytes
    free_bytes: Callable[[], int | None] = memory.free_bytes
    worker_watch: Callable[[Iterable[int]], memory.WorkerWatch] = memory.WorkerWatch

    def memory_of(self, session: Session) -> int | None:
        """The most bytes that the processes which train in a session have held; None where that can't be told."""
        return self.peak_bytes(_pids(session))

    def workers_of(self, session: Session) -> memory.WorkerWatch:
        """Looks at what a session's loader workers have for themselves, as long as the context lasts."""
        return self.worker_watch(_pids(session))


def _pids(session: Session) -> list[int]:
    """The processes that train on this host."""
    hellos = session.ranks or ([] if session.hello is None else [session.hello])
    return [hello.pid for hello in hellos if hello.host in ("", socket.gethostname())]
