"""Counters of processes in, use by role out: who used how much since the previous sample. Pure.

Processes start and end between two samples. A new process is charged with everything that it has used since it started.
What a process used after its last sample is known from its parent, which waited for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bottleneck_doctor.monitor.recording import GAP

ROLES = ("main", "workers", "other", "doctor")
"""`other`: the rest of the session's processes. `doctor`: doctor and its helpers, so that nobody else is charged."""


class Reading(NamedTuple):
    """One process at one moment: counters since it began (seconds, faults, bytes), threads and resident bytes.

    `reaped_…`: of its children that ended. `blocked`: seconds that it waited for a disk. NaN is a gap.
    """

    user: float = 0.0
    system: float = 0.0
    reaped_user: float = 0.0
    reaped_system: float = 0.0
    blocked: float = 0.0
    minor_faults: float = 0.0
    major_faults: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    threads: float = 0.0
    rss_bytes: float = 0.0
    alive: bool = True
    """False if it has ended, and its parent has not waited for it yet."""


class Member(NamedTuple):
    role: str
    parent: int
    reading: Reading


@dataclass
class _Debt:
    """What children of one parent had used when they were last seen; their parent will count it too."""

    role: str
    user: float = 0.0
    system: float = 0.0
    ticks: int = 0


_RATES = ("minor_faults", "major_faults", "read_bytes", "written_bytes")
_NOTHING = Reading()
_DEBT_TICKS = 2


class Accounts:
    """Keeps the previous sample. Call `tick` once for each sample."""

    def __init__(self) -> None:
        self._last: Mapping[int, Member] | None = None
        self._debts: dict[int, _Debt] = {}

    def tick(self, seconds: float, seen: Mapping[int, Member]) -> dict[str, float]:
        """Columns of the sample that ends now: cores, shares, rates a second and levels. Empty for the first one."""
        last, self._last = self._last, seen
        if last is None:
            return {}
        row: dict[str, float] = {}
        for role in ROLES:
            changes = [(_before(last, pid), each.reading) for pid, each in seen.items() if each.role == role]
            row.update(_use(role, changes, seconds))
        self._bury(last, seen)
        for pid, member in seen.items():
            self._charge_tail(row, pid, _before(last, pid), member.reading, seconds)
        return row

    def _bury(self, last: Mapping[int, Member], seen: Mapping[int, Member]) -> None:
        for parent, debt in list(self._debts.items()):
            debt.ticks += 1
            if debt.ticks >= _DEBT_TICKS:
                del self._debts[parent]
        for pid in last.keys() - seen.keys():
            gone = last[pid]
            debt = self._debts.setdefault(gone.parent, _Debt(gone.role))
            if gone.role == "workers":
                debt.role = gone.role
            debt.user += gone.reading.user + gone.reading.reaped_user
            debt.system += gone.reading.system + gone.reading.reaped_system
            debt.ticks = 0

    def _charge_tail(self, row: dict[str, float], pid: int, before: Reading, now: Reading, seconds: float) -> None:
        """Charge what children of this process that ended used between their last sample and their end."""
        user = now.reaped_user - before.reaped_user
        system = now.reaped_system - before.reaped_system
        if user + system <= 0:
            return
        debt = self._debts.pop(pid, None) or _Debt("other")
        for field, tail in (("cpu_user", user - debt.user), ("cpu_system", system - debt.system)):
            name = f"{debt.role}.{field}"
            if tail > 0:
                known = row.get(name, GAP)
                row[name] = (known if known == known else 0.0) + tail / seconds


def _before(last: Mapping[int, Member], pid: int) -> Reading:
    member = last.get(pid)
    return member.reading if member is not None else _NOTHING


def _use(role: str, changes: list[tuple[Reading, Reading]], seconds: float) -> dict[str, float]:
    row = {f"{role}.processes": float(sum(now.alive for _, now in changes))}
    if not changes:
        return row

    def rate(field: str) -> float:
        # In this order, `max` returns NaN if the value is a gap.
        return float(sum(max(getattr(now, field) - getattr(then, field), 0.0) for then, now in changes)) / seconds

    row[f"{role}.cpu_user"] = rate("user")
    row[f"{role}.cpu_system"] = rate("system")
    for field in _RATES:
        row[f"{role}.{field}"] = rate(field)
    row[f"{role}.blocked_share"] = rate("blocked") / len(changes)
    row[f"{role}.threads"] = sum(now.threads for _, now in changes if now.alive)
    row[f"{role}.rss_bytes"] = sum(now.rss_bytes for _, now in changes if now.alive)
    return row
