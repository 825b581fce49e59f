"""For how much of a training's time the kernel works for it, as its windows tell: clearing pages of memory that it asks
for, above all. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bottleneck_doctor.documents.report import Window

MODES = ("timed", "phases")
"""Windows in which the program trains as it is written."""


@dataclass(frozen=True)
class KernelTime:
    """Parts of the training's time. `bound`: what would be saved at most if the kernel had nothing to do, which holds
    where one thread at a time waits for it. `share`: what would be saved if it worked for all threads alike."""

    bound: float
    share: float


def pages_a_step(windows: Sequence[Window]) -> float | None:
    """Pages that the kernel gives for a step of the training as written; None where the system does not tell."""
    told = [
        around.faults * window.seconds / window.steps
        for window in windows
        if _as_written(window) and window.steps and (around := window.around) and around.faults is not None
    ]
    return median(told) if told else None


def of(windows: Sequence[Window]) -> KernelTime | None:
    """What windows of the training as written tell; None where the system tells nothing of it."""
    told = [
        (around.kernel_cpu, around.kernel_cpu / around.own_cpu)
        for window in windows
        if _as_written(window) and (around := window.around) and around.kernel_cpu is not None and around.own_cpu
    ]
    if not told:
        return None
    bounds, shares = zip(*told, strict=True)
    return KernelTime(bound=min(1.0, median(bounds)), share=min(1.0, median(shares)))


def _as_written(window: Window) -> bool:
    return window.status == "ok" and not window.setting and window.mode in MODES
