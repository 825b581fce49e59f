"""The session's processes and their counters, read from Linux' /proc with few system calls.

Files stay open from one sample to the next: reading one again costs 2 to 8 µs, while psutil needs 1.5 ms to list the
processes before it reads any counter. /proc is listed only if a process or thread has started somewhere since the last
time, and rarely if listing is slow. The children of the main process, such as its loader workers, are read from the
kernel every time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from bottleneck_doctor.monitor import procfs
from bottleneck_doctor.monitor.accounts import Member, Reading
from bottleneck_doctor.monitor.pace import Pace
from bottleneck_doctor.monitor.recording import GAP, Missing

TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

WORKER_NAME = "pt_data_worker"
"""The name that torch gives the process of a loader worker, since 2.6."""
NAMED_WITHIN = 10.0
"""Seconds from a worker's start until torch has named it; a spawned one imports torch first."""
SETTLED = 1.0
"""A forked process that is to become another program has done so after this many seconds."""
MOST_OPEN = 128
"""At most this many files are kept open. The files of further processes are opened for each reading."""

NO_DELAYS = (
    "Time blocked on disks is estimated from the state in which each process was seen: "
    "the kernel keeps no delay accounts (kernel.task_delayacct)."
)

Gone = (OSError, *procfs.Malformed)


class ProcFile:
    """A file of /proc that is read again and again."""

    def __init__(self, path: str, *, keep: bool = True) -> None:
        self._path = path
        self._number = os.open(path, os.O_RDONLY) if keep else None

    def read(self) -> bytes:
        """Raises `OSError`, where the process is gone too."""
        if self._number is None:
            return slurp(self._path)
        block = os.pread(self._number, 1 << 14, 0)
        if len(block) < 1 << 14:
            return block
        return slurp(self._path)

    def head(self, size: int) -> bytes:
        """The beginning of it."""
        return os.pread(self._number, size, 0) if self._number is not None else self.read()[:size]

    def close(self) -> None:
        if self._number is not None:
            os.close(self._number)
            self._number = None

    @property
    def kept(self) -> bool:
        return self._number is not None


def slurp(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


@dataclass
class _Process:
    pid: int
    parent: int
    root_role: str
    since: float
    stat: ProcFile
    io: ProcFile | None = None
    role: str = ""
    command: bytes = b""
    candidate: bool = False
    named: bool = False
    stored: tuple[float, float] = (GAP, GAP)
    blocked: float = 0.0
    switches: dict[str, tuple[int, int]] = field(default_factory=dict)
    ran_before: bool = False
    """It ran before it was watched, so the first values of its counters do not count."""
    pss: float = GAP
    pss_at: float = 0.0


class LinuxTree:
    """The process `root`, its descendants, and doctor itself. `missing` names what can't be read."""

    def __init__(self, root: int, *, own: int | None = None, proc: str = "/proc") -> None:
        self.root = root
        self.missing = Missing()
        self._proc = proc
        self._own = os.getpid() if own is None else own
        self._processes: dict[int, _Process] = {}
        self._strangers: set[int] = set()
        self._scan_pace = Pace(0.1, 0.003)
        self._last_pid = -1
        self._names_workers = False
        self._open = 0
        self._before: float | None = None
        try:
            self._newest: ProcFile | None = ProcFile(f"{proc}/loadavg")
        except OSError:
            self._newest = None
        try:
            self._children: ProcFile | None = ProcFile(f"{proc}/{root}/task/{root}/children")
        except OSError:
            self._children = None  # Kernels may be built without it: workers are then found by listing /proc.
        self._accounts_delays = self._delays_accounted()

    def _delays_accounted(self) -> bool:
        try:
            accounted = slurp(f"{self._proc}/sys/kernel/task_delayacct").strip() == b"1"
        except OSError:
            accounted = False
        if not accounted:
            self.missing.add(NO_DELAYS)
        return accounted

    def close(self) -> None:
        for process in self._processes.values():
            self._drop(process)
        self._processes.clear()
        for file in (self._newest, self._children):
            if file is not None:
                file.close()

    def read(self, now: float) -> dict[int, Member]:
        """The tree as it is: process id to member. The root is not in it once it is gone."""
        self._scan(now)
        self._adopt_children(now)
        seconds = 0.0 if self._before is None else now - self._before
        self._before = now
        seen = {}
        for pid, process in list(self._processes.items()):
            try:
                stat = procfs.stat(process.stat.read())
            except Gone:
                self._drop(self._processes.pop(pid))
                continue
            if stat.name == WORKER_NAME:
                process.named = self._names_workers = True
            reading = self._reading(process, stat, seconds)
            process.role = self._role(process, now)
            seen[pid] = Member(process.role, process.parent, reading)
        return seen

    # -- who belongs to it -------------------------------------------------------------------------------------------

    def _scan(self, now: float) -> None:
        if not self._scan_pace.due(now):
            return
        newest = -2
        if self._newest is not None:
            try:
                newest = procfs.last_pid(self._newest.read())
            except Gone:
                pass
            if newest == self._last_pid:
                return
        first = not self._processes
        begun = time.thread_time()
        try:
            listed = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        except OSError:
            listed = set()
            self.missing.add(f"{self._proc} can't be listed: only the main process is watched.")
        if first:
            listed |= {self.root, self._own}
        self._strangers &= listed
        found = {}
        for pid in listed - self._strangers - self._processes.keys():
            try:
                found[pid] = procfs.stat(slurp(f"{self._proc}/{pid}/stat"))
            except Gone:
                continue
        growing = True
        while growing:
            growing = False
            for pid in list(found):
                role = self._root_role(pid, found[pid])
                if role:
                    self._adopt(pid, found.pop(pid), role, now)
                    growing = True
        self._strangers.update(found)
        self._last_pid = newest
        # Reading everything that runs on the machine is done once; it says nothing of what the next time will cost.
        self._scan_pace.spent(now, 0.0 if first else time.thread_time() - begun)

    def _adopt_children(self, now: float) -> None:
        """This takes a few microseconds, so it is done each time: a window may end before /proc is listed again."""
        if self._children is None:
            return
        try:
            pids = [int(word) for word in self._children.read().split()]
        except (OSError, ValueError):
            return
        for pid in pids:
            if pid in self._processes:
                continue
            try:
                stat = procfs.stat(slurp(f"{self._proc}/{pid}/stat"))
            except Gone:
                continue
            self._strangers.discard(pid)
            self._adopt(pid, stat, self._root_role(pid, stat) or "main", now)

    def _root_role(self, pid: int, stat: procfs.Stat) -> str:
        if pid == self.root:
            return "main"
        if pid == self._own:
            return "doctor"
        parent = self._processes.get(stat.parent)
        if parent is not None:
            return parent.root_role
        # A process whose parent has ended is no descendant of the root any more, but still in the session.
        return "main" if stat.session == self.root else ""

    def _adopt(self, pid: int, stat: procfs.Stat, role: str, now: float) -> None:
        keep = self._open + 2 <= MOST_OPEN
        folder = f"{self._proc}/{pid}"
        try:
            process = _Process(pid, stat.parent, role, now, ProcFile(f"{folder}/stat", keep=keep))
        except OSError:
            return
        self._open += process.stat.kept
        try:
            process.io = ProcFile(f"{folder}/io", keep=keep)
            self._open += process.io.kept
        except OSError as error:
            self._io_refused(error)
        process.ran_before = self._before is None
        self._processes[pid] = process

    def _drop(self, process: _Process) -> None:
        for file in (process.stat, process.io):
            if file is not None:
                self._open -= file.kept
                file.close()

    def _role(self, process: _Process, now: float) -> str:
        if process.root_role == "doctor" or process.pid == self.root:
            return process.root_role
        age = now - process.since
        if not process.command or age < SETTLED:
            process.command = self._command(process.pid) or process.command
            process.candidate = self._may_be_worker(process)
        unnamed = self._names_workers and age > NAMED_WITHIN
        return "workers" if process.named or (process.candidate and not unnamed) else "other"

    def _may_be_worker(self, process: _Process) -> bool:
        """Whether multiprocessing started it: forked, spawned, or forked by multiprocessing's server."""
        parent = self._processes.get(process.parent)
        if parent is None:
            return process.candidate
        if not parent.command:
            parent.command = self._command(parent.pid)
        if parent.pid == self.root:
            forked = process.command == parent.command and bool(process.command)
            return forked or b"multiprocessing.spawn" in process.command
        return b"multiprocessing.forkserver" in parent.command and process.command == parent.command

    def _command(self, pid: int) -> bytes:
        try:
            return slurp(f"{self._proc}/{pid}/cmdline")
        except OSError:
            return b""

    # -- what it has used --------------------------------------------------------------------------------------------

    def _reading(self, process: _Process, stat: procfs.Stat, seconds: float) -> Reading:
        if process.io is not None:
            try:
                process.stored = procfs.storage_bytes(process.io.read())
            except PermissionError as error:
                self._io_refused(error)
                process.io = None
                process.stored = (GAP, GAP)
            except Gone:
                pass  # It ended between the two readings: keep what is known.
        if self._accounts_delays:
            process.blocked = stat.blocked / TICK
        elif stat.state == "D":
            process.blocked += seconds
        return Reading(
            user=stat.user / TICK,
            system=stat.system / TICK,
            reaped_user=stat.reaped_user / TICK,
            reaped_system=stat.reaped_system / TICK,
            blocked=process.blocked,
            minor_faults=stat.minor_faults,
            major_faults=stat.major_faults,
            read_bytes=process.stored[0],
            written_bytes=process.stored[1],
            threads=stat.threads,
            rss_bytes=stat.rss_pages * PAGE,
            alive=stat.state not in "ZX",
        )

    def _io_refused(self, error: OSError) -> None:
        self.missing.add(f"Bytes read and written by a process: /proc/PID/io can't be read ({error.strerror}).")

    def switches(self) -> dict[str, tuple[int, int]]:
        """Voluntary and involuntary context switches by role since the last call: of all threads, so read seldom."""
        total: dict[str, tuple[int, int]] = {}
        for process in self._processes.values():
            if process.root_role == "doctor":
                continue
            now = {}
            folder = f"{self._proc}/{process.pid}/task"
            try:
                for thread in os.listdir(folder):
                    try:
                        now[thread] = procfs.switches(slurp(f"{folder}/{thread}/status"))
                    except Gone:
                        continue
            except OSError:
                continue
            before, process.switches = process.switches, now
            if process.ran_before:
                process.ran_before = False
                continue
            sums = total.get(process.role, (0, 0))
            for thread, (voluntary, involuntary) in now.items():
                old = before.get(thread, (0, 0))
                sums = (sums[0] + voluntary - old[0], sums[1] + involuntary - old[1])
            total[process.role] = sums
        return total

    def pss(self, now: float, again: float) -> dict[str, float]:
        """Proportional set size by role. Each call reads one process: the one whose reading is oldest, and older than
        `again` seconds. Workers are alike, so those not yet read count as the mean of the others."""
        ours = [each for each in self._processes.values() if each.root_role != "doctor"]
        watched = [each for each in ours if now - each.since > SETTLED]
        oldest = min(watched, key=lambda each: each.pss_at, default=None)
        if oldest is not None and (oldest.pss != oldest.pss or now - oldest.pss_at > again):
            oldest.pss_at = now
            try:
                oldest.pss = procfs.table(slurp(f"{self._proc}/{oldest.pid}/smaps_rollup"))[b"Pss"]
            except Gone as error:
                if isinstance(error, PermissionError):
                    self.missing.add(f"PSS: /proc/PID/smaps_rollup can't be read ({error.strerror}).")
        found = {}
        for role in ("main", "workers", "other"):
            members = [each.pss for each in ours if each.role == role]
            known = [pss for pss in members if pss == pss]
            if known and (role == "workers" or len(known) == len(members)):
                found[role] = sum(known) * len(members) / len(known)
        return found
