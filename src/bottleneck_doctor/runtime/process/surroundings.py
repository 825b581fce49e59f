"""What the machine did while a window was timed: counters of the kernel, read just before and just after.

A sampler sees a window of half a second five times at best. Counters that only grow are exact over any time, however
short, if they are read at its start and its end, and only the timed process knows these moments. A reading takes a
tenth of a millisecond, outside of the time that counts. Nothing here raises: a figure that the system does not report
is left out.
"""

from __future__ import annotations

import json
import os
from typing import Dict, Iterator, List, Optional, Set, Tuple

from ..wire.channel import invited_from_here
from .originals import getpid, now, open_file, processor_time, read_clock, resources

_UNREADABLE = (OSError, ValueError, IndexError)
_supervisor: Optional[int] = None
"""The supervisor's process, all of whose descendants are ours; None where it is on another host."""


def know_supervisor(invitation: str) -> None:
    """Remember who sent `invitation`, so that its processes don't count as other programs. Never raises."""
    global _supervisor
    try:
        _supervisor = int(json.loads(invitation)["supervisor"]) if invited_from_here(invitation) else None
    except (ValueError, KeyError, TypeError, OSError):
        _supervisor = None


class Surroundings:
    """Counters over the timed part of one window. `begin` and `end` around each stretch of it; `told` is their sum."""

    def __init__(self, proc: str = "/proc", groups: str = "/sys/fs/cgroup") -> None:
        self._proc = proc
        self._quotas = _quotas(proc, groups)
        self._before: Optional[Dict[str, float]] = None
        self._sums: Dict[str, float] = {}
        self._began = 0.0
        self._queued: Dict[int, int] = {}
        """Nanoseconds for which each thread of ours has waited for a CPU, by its number."""
        self._reaped: Dict[int, int] = {}
        """Pages of memory that the children had which each process of ours has waited for, by its number: no process
        lives without some."""
        self.stretches: List[List[float]] = []
        """When each stretch began and ended, by our clock."""

    def begin(self) -> None:
        self._before = self._read()
        self._began = now()

    def end(self) -> None:
        """Does nothing if no stretch was begun."""
        before, self._before = self._before, None
        if before is None:
            return
        self.stretches.append([self._began, now()])
        queued, reaped = self._queued, self._reaped
        after = self._read()
        # How long a process that has ended waited for a CPU is lost. Then it is not known for all of ours together.
        if "own" in before and not self._ended_since(reaped):
            # For each thread, because its waiting time is lost when it ends, unlike its CPU time.
            waited = sum(since - queued.get(thread, 0) for thread, since in self._queued.items())
            before["queued"], after["queued"] = 0.0, waited / 1e9
        changes = {name: after[name] - before[name] for name in before if name in after}
        # A counter that is missing in one stretch is left out of the sum.
        known = self._sums.keys() & changes.keys() if self._sums else changes.keys()
        self._sums = {name: self._sums.get(name, 0.0) + changes[name] for name in known}

    def told(self) -> Dict[str, float]:
        """By name, over all stretches: `seconds` of the clock; seconds of all CPUs together that were `busy`, that the
        host of a virtual machine took (`stolen`), that there were (`capacity`), and that our own processes used
        (`own`); seconds for which threads of ours that live were `queued` for a CPU, all together, where no process of
        ours has ended meanwhile; seconds for which any task waited for one (`cpu_pressure`) or for a disk
        (`io_pressure`); `periods` of a CPU quota and those of them `throttled`; and of this process alone, `faults`,
        the pages of memory that it got from the kernel, and seconds for which the `kernel` worked for it.

        What can't be read is left out; everything, where no timed part was seen.
        """
        return dict(self._sums)

    def _read(self) -> Dict[str, float]:
        found = {"seconds": now()}
        try:
            found.update(_cpu_times(self._text("stat", 512)))
        except _UNREADABLE:
            pass
        own = self._own()
        if own is not None:
            found["own"] = own
        for what in ("cpu", "io"):
            try:
                found[what + "_pressure"] = _pressure(self._text("pressure/" + what))
            except _UNREADABLE:
                pass
        try:
            if self._quotas:
                # Of nested quotas the one that bites most is the one that is felt.
                found["throttled"], found["periods"] = max(_throttling(_text(path)) for path in self._quotas)
        except _UNREADABLE:
            pass
        if resources is not None:
            used = resources()
            found["faults"], found["kernel"] = float(used.ru_minflt), used.ru_stime
        return found

    def _text(self, name: str, most: int = -1) -> bytes:
        return _text(self._proc + "/" + name, most)

    # -- our own -----------------------------------------------------------------------------------------------------

    def _own(self) -> Optional[float]:
        """CPU seconds of the supervisor, of this process and of the descendants of both, dead or alive; None: unknown.

        When a process ends and its parent waits for it, its time is added to the parent's, so the sum only grows.
        """
        if _supervisor is None:
            return None
        total = 0.0
        self._queued, self._reaped = {}, {}
        seen: Set[int] = set()
        left: List[int] = [_supervisor, getpid()]
        while left:
            pid = left.pop()
            if pid in seen:
                continue
            seen.add(pid)
            try:
                total += self._used(pid)
                left.extend(self._children(pid))
            except _UNREADABLE:
                if pid == getpid():
                    return None
        return total

    def _ended_since(self, reaped: Dict[int, int]) -> bool:
        """Whether processes of ours have ended since the last reading, which had `reaped`."""
        return bool(reaped.keys() - self._reaped.keys()) or sum(self._reaped.values()) > sum(reaped.values())

    def _used(self, pid: int) -> float:
        """CPU seconds of a process and of its children that it has waited for."""
        field = self._text("%d/stat" % pid).rpartition(b") ")[2].split()
        self._reaped[pid] = int(field[8])
        lived, reaped = (sum(map(int, field[first : first + 2])) / _TICK for first in (11, 13))
        if pid == getpid():
            return processor_time() + reaped
        try:
            # Any process' clock can be read by its number (clock_getcpuclockid(3)), to a nanosecond and not to a tick.
            return (lived if read_clock is None else read_clock((~pid << 3) | 2)) + reaped
        except OSError:
            return lived + reaped

    def _children(self, pid: int) -> Iterator[int]:
        """The processes that this one has started; on the way, for how long its threads have waited for a CPU.

        Raises `OSError` where the kernel was built without either.
        """
        folder = "%s/%d/task" % (self._proc, pid)
        for thread in os.listdir(folder):
            try:
                self._queued[int(thread)] = int(_text("%s/%s/schedstat" % (folder, thread)).split()[1])
                yield from map(int, _text("%s/%s/children" % (folder, thread)).split())
            except (FileNotFoundError, ProcessLookupError):
                if os.path.exists("%s/%s" % (folder, thread)):
                    raise


_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _text(path: str, most: int = -1) -> bytes:
    with open_file(path, "rb", buffering=0) as file:
        return bytes(file.read(most))


def _cpu_times(text: bytes) -> Dict[str, float]:
    """The first line of /proc/stat, in seconds. Guests' time is in user time already."""
    words = text.split(b"\n", 1)[0].split()
    if words[0] != b"cpu":
        raise ValueError("no line of all CPUs")
    user, nice, system, idle, waiting, *more = (int(word) / _TICK for word in words[1:])
    interrupts, soft, stolen = (*more, 0.0, 0.0, 0.0)[:3]
    busy = user + nice + system + interrupts + soft
    return {"busy": busy, "stolen": stolen, "capacity": busy + stolen + idle + waiting}


def _pressure(text: bytes) -> float:
    """Seconds in which some task waited, from a file of /proc/pressure."""
    some = next((line for line in text.splitlines() if line.startswith(b"some")), b"")
    return int(some.rpartition(b"total=")[2]) / 1e6


def _throttling(text: bytes) -> Tuple[int, int]:
    """Periods of the CPU quota in which it was used up, and all of them, from cpu.stat of either version."""
    words = dict(line.split(b" ", 1) for line in text.splitlines())
    return int(words.get(b"nr_throttled", 0)), int(words.get(b"nr_periods", 0))


def _quotas(proc: str, groups: str) -> List[str]:
    """The cpu.stat of this process' control group and of those above it, as far as they have a CPU quota."""
    try:
        lines = _text(proc + "/self/cgroup").decode(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        mounts = [""] if not controllers else ["cpu", controllers] if "cpu" in controllers.split(",") else []
        parts = [part for part in path.split("/") if part and part != ".."]
        for mount in dict.fromkeys(mounts):
            for depth in range(len(parts) + 1):
                file = os.path.join(groups, mount, *parts[:depth], "cpu.stat")
                try:
                    if _throttling(_text(file))[1]:
                        found.append(file)
                except _UNREADABLE:
                    continue
    return found
