"""The same figures from psutil on systems without /proc: macOS, BSD. Reading them is slower, so it happens less often,
and many figures are gaps."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import psutil

from bottleneck_doctor.monitor.accounts import Member, Reading
from bottleneck_doctor.monitor.recording import GAP, Missing


class PsutilTree:
    """As `LinuxTree`, with the figures that psutil has."""

    def __init__(self, root: int, *, own: int | None = None) -> None:
        self.root = root
        self.missing = Missing(
            "Time blocked on disks, page faults by kind and bytes of a process: this system does not tell them."
        )
        self._own = os.getpid() if own is None else own
        self._known: dict[int, psutil.Process] = {}
        self._roles: dict[int, str] = {}
        self._switches: dict[int, tuple[int, int]] = {}

    def close(self) -> None:
        self._known.clear()

    def read(self, now: float) -> dict[int, Member]:
        self._find(self.root, "main")
        self._find(self._own, "doctor")
        seen = {}
        for pid, process in list(self._known.items()):
            try:
                seen[pid] = Member(self._roles[pid], process.ppid(), _reading(process))
            except psutil.Error:
                del self._known[pid]
        return seen

    def _find(self, root: int, role: str) -> None:
        with contextlib.suppress(psutil.Error):
            top = self._known.get(root) or psutil.Process(root)
            self._known[root] = top
            self._roles[root] = role
            command = top.cmdline() if role == "main" else []
            for child in top.children(recursive=True):
                if child.pid in self._known or child.pid == self.root:
                    continue
                with contextlib.suppress(psutil.Error):
                    if role == "doctor":
                        mine = self._roles.get(child.ppid()) == role
                        self._roles[child.pid] = role if mine else "other"
                        if not mine:
                            continue
                    else:
                        self._roles[child.pid] = _role(child.cmdline(), command)
                    self._known[child.pid] = child

    def switches(self) -> dict[str, tuple[int, int]]:
        """Context switches by role since the last call; processes seen for the first time don't count yet."""
        total: dict[str, tuple[int, int]] = {}
        for pid, process in self._known.items():
            with contextlib.suppress(psutil.Error):
                now = process.num_ctx_switches()
                before = self._switches.get(pid)
                self._switches[pid] = (now.voluntary, now.involuntary)
                if before is not None:
                    sums = total.get(self._roles[pid], (0, 0))
                    total[self._roles[pid]] = (
                        sums[0] + now.voluntary - before[0],
                        sums[1] + now.involuntary - before[1],
                    )
        return total

    def pss(self, now: float, again: float) -> dict[str, float]:
        """Not known outside Linux."""
        return {}


def _role(command: list[str], parents: list[str]) -> str:
    text = " ".join(command)
    spawned = "multiprocessing.spawn" in text or "--multiprocessing-fork" in text
    return "workers" if spawned or (command and command == parents) else "other"


def _reading(process: psutil.Process) -> Reading:
    with process.oneshot():
        times: Any = process.cpu_times()
        return Reading(
            user=times.user,
            system=times.system,
            reaped_user=getattr(times, "children_user", 0.0),
            reaped_system=getattr(times, "children_system", 0.0),
            blocked=GAP,
            minor_faults=GAP,
            major_faults=GAP,
            read_bytes=GAP,
            written_bytes=GAP,
            threads=process.num_threads(),
            rss_bytes=process.memory_info().rss,
            alive=process.status() != psutil.STATUS_ZOMBIE,
        )


class PsutilMachine:
    """As `LinuxMachine`, with the figures that psutil has."""

    def __init__(self) -> None:
        self.missing = Missing("Pressure and throttling: only Linux tells them.")
        self._before: tuple[float, float, float, float, float] | None = None

    def close(self) -> None:
        """Nothing is held open."""

    def read(self, now: float) -> dict[str, float]:
        memory = psutil.virtual_memory()
        row: dict[str, float] = {"memory_available_bytes": memory.available}
        if hasattr(memory, "cached"):
            row["page_cache_bytes"] = memory.cached
        times = psutil.cpu_times()
        disks = psutil.disk_io_counters()
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        steal = getattr(times, "steal", 0.0)
        read, written = (disks.read_bytes, disks.write_bytes) if disks is not None else (GAP, GAP)
        before, self._before = self._before, (now, busy, steal, read, written)
        if before is not None and now > before[0]:
            seconds = now - before[0]
            row["cores_busy"] = max(0.0, (busy - before[1]) / seconds)
            row["read_bytes"] = (read - before[3]) / seconds
            row["written_bytes"] = (written - before[4]) / seconds
        return row

    def clock(self, now: float) -> float | None:
        """Not read: on some systems reading it is slow, and on others it is a constant."""
        return None
