"""How much memory processes need: process ids in, bytes out, read from /proc.

The kernel keeps the peak of the process that trains. Its loader workers start and end with windows, so their own memory
is read while a window runs that does not count. Pages that a forked worker shares with its parent count as the
parent's.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from bottleneck_doctor.monitor.machine import LinuxMachine

EVERY = 0.15
"""Seconds between two readings of the workers: for each, the kernel walks all of their memory."""
_PRIVATE = re.compile(r"^Private_\w+:\s*(\d+) kB$", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def kernel_seconds(pid: int) -> float | None:
    """CPU seconds that a process has spent in the kernel so far, in all of its threads; None if unknown."""
    try:
        return float(psutil.Process(pid).cpu_times().system)
    except psutil.Error:
        return None


def free_bytes() -> int | None:
    """Bytes that further processes may use on this machine and in its control group; None if unknown."""
    machine = LinuxMachine(os.getpid())
    try:
        free = machine.read(time.monotonic()).get("memory_available_bytes")
    finally:
        machine.close()
    return None if free is None else int(free)


class WorkerWatch:
    """Watches the descendants of processes while the context lasts. `peak`: the most bytes that all of them had for
    themselves at one time; None if nothing could be read."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.peak: int | None = None
        self._pids = list(pids)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="doctor-memory", daemon=True)

    def __enter__(self) -> WorkerWatch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while True:
            seen = own_bytes(_descendants(self._pids))
            if seen is not None:
                self.peak = max(seen, self.peak or 0)
            if self._over.wait(EVERY):
                return


def _descendants(pids: Sequence[int]) -> list[int]:
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.update(each.pid for each in psutil.Process(pid).children(recursive=True))
    return sorted(found - set(pids))


def own_bytes(pids: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """Bytes that processes share with no other. None if the kernel does not say; a process that has ended counts 0."""
    total = 0
    for pid in pids:
        try:
            text = (proc / str(pid) / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            if not (proc / "self" / "smaps_rollup").exists():
                return None
            continue
        except OSError:
            return None
        total += 1024 * sum(map(int, _PRIVATE.findall(text)))
    return total


def peak_bytes(pids: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """The sum of the processes' peak memory, as Linux counts it; None on other systems, or if a process has ended."""
    total = 0
    for pid in pids:
        try:
            found = _PEAK.search((proc / str(pid) / "status").read_text())
        except OSError:
            return None
        if found is None:
            return None
        total += 1024 * int(found[1])
    return total or None
