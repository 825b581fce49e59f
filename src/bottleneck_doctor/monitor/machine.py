"""The machine as a whole on Linux: CPUs, memory, disks, pressure, and the limits of the session's control group.

Each source is opened once. A source that does not exist, or can no longer be read, is a gap, with a note in `missing`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.monitor import procfs
from bottleneck_doctor.monitor.pace import Pace
from bottleneck_doctor.monitor.recording import Missing
from bottleneck_doctor.monitor.tree import TICK, Gone, ProcFile, slurp

CLOCKS_EVERY = 2.0
MOST_CLOCKS = 4
"""At most this many CPUs are asked for their frequency, because asking may wake an idle CPU."""


@dataclass
class _Counter:
    """A source of counters, read as rates since the last reading. `rates`: makes columns from the counters before, the
    counters now, and the seconds between."""

    read: Callable[[], tuple[float, ...]]
    rates: Callable[[tuple[float, ...], float], dict[str, float]]
    before: tuple[float, ...] | None = None


class LinuxMachine:
    """Each call of `read` gives current levels, and rates as means since the last call."""

    def __init__(self, pid: int, *, proc: str = "/proc", sys: str = "/sys") -> None:
        self.missing = Missing()
        self._files: list[ProcFile] = []
        self._counters: list[_Counter] = []
        self._levels: list[Callable[[], dict[str, float]]] = []
        self._before: float | None = None
        self._clocks_pace = Pace(CLOCKS_EVERY, 0.001)
        self._proc, self._sys = proc, sys
        self._memory_limit: Callable[[], float | None] = lambda: None
        self._add_cpu()
        self._add_memory()
        self._add_disks()
        for what in ("io", "cpu", "memory"):
            self._add_pressure(what)
        self._add_group(pid)
        self._clocks = sorted(Path(sys, "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))
        self._clocks = self._clocks[:: max(1, len(self._clocks) // MOST_CLOCKS)][:MOST_CLOCKS]
        if not self._clocks:
            self.missing.add("The clock of the CPUs: this machine has no cpufreq (virtual machines rarely do).")

    def close(self) -> None:
        for file in self._files:
            file.close()

    def read(self, now: float) -> dict[str, float]:
        seconds = 0.0 if self._before is None else now - self._before
        self._before = now
        row: dict[str, float] = {}
        for level in self._levels:
            try:
                row.update(level())
            except Gone:
                continue
        for counter in self._counters:
            try:
                found = counter.read()
            except Gone:
                counter.before = None
                continue
            if counter.before is not None and seconds > 0:
                change = tuple(after - before for after, before in zip(found, counter.before, strict=True))
                row.update(counter.rates(change, seconds))
            counter.before = found
        return row

    def clock(self, now: float) -> float | None:
        """Mean clock of a few CPUs in megahertz; None if it is not due yet, or not known."""
        if not self._clocks or not self._clocks_pace.due(now):
            return None
        self._clocks_pace.spent(now, 0.0)
        try:
            return sum(int(slurp(str(path))) for path in self._clocks) / len(self._clocks) / 1000
        except Gone:
            return None

    # -- sources -----------------------------------------------------------------------------------------------------

    def _file(self, path: str, what: str = "") -> ProcFile | None:
        try:
            file = ProcFile(path)
            file.read()
        except OSError as error:
            if what:
                self.missing.add(f"{what}: {path} can't be read ({error.strerror}).")
            return None
        self._files.append(file)
        return file

    def _add_cpu(self) -> None:
        file = self._file(f"{self._proc}/stat", "Busy cores")
        if file is not None:
            self._counters.append(_Counter(lambda: procfs.cpu_times(file.head(512)), _cpu_rates))

    def _add_memory(self) -> None:
        file = self._file(f"{self._proc}/meminfo", "Memory")
        if file is None:
            return

        def level() -> dict[str, float]:
            fields = procfs.table(file.read())
            available: float = fields[b"MemAvailable"]
            limit = self._memory_limit()
            # Linux counts files in tmpfs as cached, but they are not a cache of files on disk.
            cache = fields[b"Buffers"] + fields[b"Cached"] - fields.get(b"Shmem", 0)
            return {
                "memory_available_bytes": available if limit is None else min(available, limit),
                "page_cache_bytes": cache,
            }

        self._levels.append(level)

    def _add_disks(self) -> None:
        try:
            disks = [name for name in os.listdir(f"{self._sys}/block") if procfs.is_disk(name)]
        except OSError:
            disks = []
        file = self._file(f"{self._proc}/diskstats", "Bytes of the disks") if disks else None
        if file is not None:
            rates = _rates("read_bytes", "written_bytes")
            self._counters.append(_Counter(lambda: procfs.disk_bytes(file.read(), disks), rates))
        elif not disks:
            self.missing.add("Bytes of the disks: no disk is visible here.")

    def _add_pressure(self, what: str) -> None:
        file = self._file(f"{self._proc}/pressure/{what}", f"Pressure ({what})")
        if file is not None:
            self._counters.append(_Counter(lambda: (procfs.pressure_seconds(file.read()),), _rates(f"{what}_pressure")))

    # -- control group -----------------------------------------------------------------------------------------------

    def _add_group(self, pid: int) -> None:
        try:
            paths = procfs.group_paths(slurp(f"{self._proc}/{pid}/cgroup"))
        except Gone:
            self.missing.add("Limits of the control group: none is known for this process.")
            return
        root = f"{self._sys}/fs/cgroup"
        throttles = [
            file
            for path, mount in _places(paths, root, "cpu")
            if (file := self._file(f"{mount}{path}/cpu.stat")) is not None and procfs.throttling(file.read()).periods
        ] or [
            file
            for path, mount in _places(paths, root, "cpu")[:1]
            if (file := self._file(f"{mount}{path}/cpu.stat")) is not None
        ]
        if throttles:
            self._counters.append(_Counter(lambda: _throttled(throttles), _throttled_rate))
        else:
            self.missing.add("Throttling by a CPU quota: there is no cpu.stat of this control group.")
        self._memory_limit = self._limit(paths, root)

    def _limit(self, paths: dict[str, str], root: str) -> Callable[[], float | None]:
        """Bytes left under the tightest limit of the group and of those above it, if the page cache is given up."""
        limited = []
        for path, mount in _places(paths, root, "memory"):
            for limit_name, usage_name, cache_key in (
                ("memory.max", "memory.current", b"inactive_file"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file"),
            ):
                try:
                    limit = procfs.limit_bytes(slurp(f"{mount}{path}/{limit_name}"))
                except Gone:
                    continue
                usage = self._file(f"{mount}{path}/{usage_name}") if limit is not None else None
                details = self._file(f"{mount}{path}/memory.stat") if limit is not None else None
                if limit is not None and usage is not None and details is not None:
                    limited.append((limit, usage, details, cache_key))

        def left() -> float | None:
            spare = [
                limit - int(usage.read()) + procfs.pairs(details.read()).get(key, 0)
                for limit, usage, details, key in limited
            ]
            return max(0.0, min(spare)) if spare else None

        return left


def _places(paths: dict[str, str], root: str, controller: str) -> list[tuple[str, str]]:
    """Where this controller's files may be, innermost first: the path in the hierarchy and the mount point.

    In a container the path is often the host's, while the mount begins at the container, so ancestors are tried up to
    the mount itself.
    """
    if controller in paths:
        mounts = [f"{root}/{controller}", f"{root}/cpu,cpuacct"] if controller == "cpu" else [f"{root}/{controller}"]
        path = paths[controller]
    elif "" in paths:
        mounts = [root]
        path = paths[""]
    else:
        return []
    return [(each.rstrip("/"), mount) for mount in mounts if os.path.isdir(mount) for each in procfs.ancestors(path)]


def _throttled(files: list[ProcFile]) -> tuple[float, ...]:
    # Of nested quotas, the one that limits most is the one that slows the session.
    return max((procfs.throttling(file.read()) for file in files), key=lambda each: each.throttled)


def _throttled_rate(change: tuple[float, ...], seconds: float) -> dict[str, float]:
    periods, throttled = change
    return {"throttled_share": max(0.0, min(1.0, throttled / periods)) if periods > 0 else 0.0}


def _cpu_rates(change: tuple[float, ...], seconds: float) -> dict[str, float]:
    busy, stolen, total = change
    return {"cores_busy": busy / TICK / seconds, "steal_share": stolen / total if total > 0 else 0.0}


def _rates(*names: str) -> Callable[[tuple[float, ...], float], dict[str, float]]:
    return lambda change, seconds: {name: max(0.0, each / seconds) for name, each in zip(names, change, strict=True)}
