"""How many threads of the whole machine run or are ready to run: how much CPU all programs together want.

No counter reports this, so the number is read often. The CPU time that other programs *got* would be the wrong figure:
a setting that computes more leaves them less, and then the machine would seem quieter under it. What they want does not
depend on the training.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from types import TracebackType

from bottleneck_doctor.monitor import procfs
from bottleneck_doctor.monitor.tree import Gone, ProcFile

EVERY = 0.02
"""Seconds between two readings, which together take 0.2 % of one core."""
LEAST_LOOKS = 5
"""With fewer readings, the mean says nothing."""

now = time.perf_counter
"""The clock of the guest's windows."""


class RunQueue:
    """Reads the number while the context lasts. Never raises; if the system does not report it, nothing is known."""

    def __init__(self, proc: str = "/proc", every: float = EVERY) -> None:
        self._path = f"{proc}/loadavg"
        self._every = every
        self._over = threading.Event()
        self._times: list[float] = []
        self._seen: list[int] = []
        self._thread = threading.Thread(target=self._look_on, name="doctor-run-queue", daemon=True)

    def __enter__(self) -> RunQueue:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def mean(self, stretches: Iterable[Sequence[float]] = ((0.0, math.inf),)) -> float | None:
        """Threads that ran or were ready to run, on average and without the reading thread itself, over the stretches
        of time between these moments; without moments, over all of the time. None if there were too few readings."""
        found: list[int] = []
        for began, ended in stretches:
            found += self._seen[bisect_left(self._times, began) : bisect_right(self._times, ended)]
        return sum(found) / len(found) - 1.0 if len(found) >= LEAST_LOOKS else None

    def _look_on(self) -> None:
        try:
            file = ProcFile(self._path)
        except OSError:
            return
        try:
            while not self._over.wait(self._every):
                running = procfs.running(file.read())
                self._times.append(now())
                self._seen.append(running)
        except Gone:
            pass
        finally:
            file.close()
