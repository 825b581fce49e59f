"""The use of the machine while training ran as written: means over its windows, from what the monitor sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Literal

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import DeviceUse, ProcessUse, WindowUse

PLAIN_MODES = ("timed", "sampled")
"""Windows in which training goes on as it would without us."""


def plain_windows(evidence: Evidence) -> Iterator[WindowUse]:
    """What the machine did in each window of the training as written."""
    if evidence.utilization is None:
        return
    for use in evidence.utilization.windows:
        if 0 <= use.window < len(evidence.windows):
            window = evidence.windows[use.window]
            if window.status == "ok" and not window.setting and window.mode in PLAIN_MODES:
                yield use
        elif use.label == BASELINE:
            yield use


def mean(evidence: Evidence, read: Callable[[WindowUse], float | None]) -> float | None:
    """Mean of one figure over these windows, or None where the system never said it."""
    values = [value for use in plain_windows(evidence) if (value := read(use)) is not None]
    return fmean(values) if values else None


def of(
    evidence: Evidence, role: Literal["main", "workers"], read: Callable[[ProcessUse], float | None]
) -> float | None:
    """As `mean`, for one figure of the main process, or of all workers together."""

    def one(use: WindowUse) -> float | None:
        values = [value for each in use.processes if each.role == role and (value := read(each)) is not None]
        return sum(values) if values else None

    return mean(evidence, one)


def device(evidence: Evidence, read: Callable[[DeviceUse], float | None]) -> float | None:
    """As `mean`, for one figure of the GPUs, averaged over them."""

    def one(use: WindowUse) -> float | None:
        values = [value for each in use.devices if (value := read(each)) is not None]
        return fmean(values) if values else None

    return mean(evidence, one)


def cpu(use: ProcessUse) -> float | None:
    """Cores that a process kept busy."""
    if use.cpu_user is None:
        return use.cpu_system
    return use.cpu_user + (use.cpu_system or 0.0)


def worker_processes(evidence: Evidence) -> float | None:
    return of(evidence, "workers", lambda use: float(use.processes))


def usable_cpus(evidence: Evidence) -> int:
    return max(1, evidence.found.usable_cpus)


def usable_by_all(evidence: Evidence) -> int:
    """Cores that the ranks on the first one's host share; those of one process where it trains alone."""
    hosts = [rank.host for rank in evidence.ranks]
    return usable_cpus(evidence) * max(1, hosts.count(hosts[0]) if hosts else 1)


def others(evidence: Evidence) -> float | None:
    """Cores that other programs kept busy while training ran as written; None where that is not known."""
    return mean(evidence, lambda use: use.others_cpu)


def siblings(evidence: Evidence) -> float | None:
    """Cores that processes kept busy which the program has started, where it loads without workers; None where that is
    not known."""
    return None if evidence.found.num_workers else of(evidence, "workers", cpu)


CORES_FULL = 0.9
"""At this part of the usable cores or more, all count as busy: the rest is within the error of sampling."""


def cores_full(evidence: Evidence) -> bool | None:
    """Whether all usable cores were busy; None where that is not known."""
    busy = mean(evidence, lambda use: use.cores_busy)
    return None if busy is None else busy >= CORES_FULL * usable_by_all(evidence)
