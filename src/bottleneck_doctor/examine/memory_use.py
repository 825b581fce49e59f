"""How much memory a setting needs beside the training as written: the memory of windows in, both figures out. Pure.

Two parts are put together. What loader workers have for themselves is known at the end of each window: they start and
end with it. Of the processes that train, and of a device, the system tells only the most that was held so far, which a
window changes only where it needs more than everything before it. So:

- a window that raises the peak tells exactly what its setting needs;
- any other tells that its setting needs no more than the peak before it. If nothing had raised that above the peak of
  the training as written, the setting needs no more than that;
- only the first window of a setting in a process counts, since memory may stay with the process;
- of all processes, the smallest figure counts. A training that grows by itself raises the peak in any window, but
  hardly in those of one setting in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from bottleneck_doctor.documents.labels import BASELINE, key_of
from bottleneck_doctor.documents.report import Combination, FixOutcome, PeakMemory, Setting, Window, WindowMemory
from bottleneck_doctor.measure import pairing

LEAST_SHARE = 0.02
"""Part of what is held as written by which the peak has to rise to count. Ours: it creeps by about a hundredth."""
LEAST_BYTES = 32 << 20
LEAST_PROCESSES = 2
"""Processes that have to tell of a setting. One alone may have grown by chance."""


@dataclass(frozen=True)
class _Need:
    """What one process tells of a setting: its peak as `written`, and how much `more` the setting needs; at most so
    much, unless it is `exact`."""

    written: float
    more: float
    exact: bool


class MemoryUse:
    """What the windows of one examination tell."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self._by_session: dict[int, list[Window]] = {}
        for window in windows:
            if window.memory is not None:
                self._by_session.setdefault(window.session, []).append(window)

    def fix(self, outcome: FixOutcome) -> FixOutcome:
        """The outcome of a fix, with the memory that it needs."""
        return replace(outcome, peak_memory=self._told(outcome))

    def together(self, combination: Combination | None) -> Combination | None:
        """The same of several fixes."""
        return None if combination is None else replace(combination, peak_memory=self._told(combination))

    def _told(self, outcome: FixOutcome | Combination) -> list[PeakMemory] | None:
        # What a setting prepares before training begins is in no window.
        if outcome.speedup is None or outcome.preparation is not None or not outcome.setting:
            return None
        return self.of(outcome.setting) or None

    def of(self, setting: Setting) -> list[PeakMemory]:
        """On the host, and on a device; without what is not known."""
        key = key_of(setting)
        found = []
        host = self._need(key, lambda memory: memory.peak)
        written, changed = self._workers(BASELINE), self._workers(key)
        if host is not None and written is not None and changed is not None:
            held = host.written + written
            found.append(PeakMemory(where="host", written=held, changed=host.written + host.more + changed))
        device = self._need(key, lambda memory: memory.device_peak)
        if device is not None:
            found.append(PeakMemory(where="device", written=device.written, changed=device.written + device.more))
        return found

    def _workers(self, key: str) -> float | None:
        """The mean of what workers had for themselves in windows of a setting."""
        windows = [window for each in self._by_session.values() for window in each if _is_of(window, key)]
        known = [window.memory.workers for window in windows if window.memory and window.memory.workers is not None]
        return fmean(known) if known else None

    def _need(self, key: str, peak: Callable[[WindowMemory], int | None]) -> _Need | None:
        """What a setting needs; None where too few processes tell it."""
        needs = [need for each in self._by_session.values() if (need := _need_of(key, each, peak)) is not None]
        if len(needs) < LEAST_PROCESSES:
            return None
        least = min(needs, key=lambda need: need.more)
        written = fmean(need.written for need in needs)
        if least.more < _matters(written):
            return _Need(written, 0.0, exact=False)
        exact = sum(need.exact for need in needs)
        return _Need(written, least.more, exact=True) if least.exact and exact >= LEAST_PROCESSES else None


def _need_of(key: str, windows: Sequence[Window], peak: Callable[[WindowMemory], int | None]) -> _Need | None:
    """What the first window of a setting in one process tells. `windows`: those of the process, in order."""
    written: float | None = None
    before = 0.0
    changed = False
    for window in windows:
        now = peak(window.memory) if window.memory is not None else None
        if now is None:
            continue
        if _is_of(window, key):
            if written is None:
                return None
            exact = now - before >= _matters(written)
            return _Need(written, max(0.0, (now if exact else max(before, now)) - written), exact)
        changed = changed or bool(window.setting)
        if not changed:
            written = now
        before = now
    return None


def _is_of(window: Window, key: str) -> bool:
    return window.label == key and window.mode == "timed" and pairing.usable(window)


def _matters(written: float) -> float:
    return max(LEAST_BYTES, LEAST_SHARE * written)
