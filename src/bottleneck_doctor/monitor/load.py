"""How much other programs load the machine during a session: read when it starts, and after its processes have ended.

This is exact, unlike sampling: the CPU times of processes that ended are known to the process that waited for them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable

import psutil


class LoadWatch:
    """Mean number of cores that other programs keep busy, from `start` to `finish`."""

    def __init__(self) -> None:
        self._started: tuple[float, float, float] | None = None
        self._mean: float | None = None

    def start(self) -> None:
        self._started = (time.monotonic(), _busy(), _ours())

    def finish(self, orphans: float) -> None:
        """Call after the session's processes have been waited for. `orphans`: CPU seconds of those nobody waits for."""
        if self._started is None or self._mean is not None:
            return
        began, busy, ours = self._started
        seconds = time.monotonic() - began
        if seconds > 1.0:
            self._mean = max(0.0, (_busy() - busy) - (_ours() - ours) - orphans) / seconds

    def mean(self) -> float | None:
        """Cores; None if the session was too short."""
        return self._mean


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """CPU time that these processes have used so far."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _ours() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _busy() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return float(sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0))
