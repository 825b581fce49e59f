"""What the engine needs from outside: the clock, the processes, and what watches them. Tests of the order of
measurements pass in a made-up machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bottleneck_doctor.monitor import RunQueue, UsageWatch, memory
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.failure import Stack
from bottleneck_doctor.session.session import Session


@dataclass(frozen=True)
class Outside:
    """By default, the clock and the processes of this machine.

    `now`: seconds; only differences mean something. `peak_bytes`: the most memory that processes have held.
    `free_bytes`: how much memory more processes may use. `kernel_seconds`: seconds that the kernel has worked for a
    process. The last three return None if that can't be known.
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
    stacks: Callable[[int], list[Stack]] = autopsy.stacks
    worker_watch: Callable[[Iterable[int]], memory.WorkerWatch] = memory.WorkerWatch

    def memory_of(self, session: Session) -> int | None:
        """The most bytes that the training processes of a session have held; None if that can't be known."""
        return self.peak_bytes(_pids(session))

    def stacks_of(self, session: Session) -> list[Stack]:
        """Where the process stands that a session has started; empty if that can't be known."""
        return [] if session.pid is None else self.stacks(session.pid)

    def workers_of(self, session: Session) -> memory.WorkerWatch:
        """A context that watches how much memory a session's loader workers have for themselves."""
        return self.worker_watch(_pids(session))


def _pids(session: Session) -> list[int]:
    """The processes that train on this host."""
    hellos = session.ranks or ([] if session.hello is None else [session.hello])
    return [hello.pid for hello in hellos if hello.host in ("", socket.gethostname())]
