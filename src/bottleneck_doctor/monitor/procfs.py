"""Texts of Linux' /proc and of control groups in, numbers out. Pure: no file is opened here.

Formats: proc(5), the kernel's Documentation/filesystems/proc.rst, admin-guide/cgroup-v2.rst and accounting/psi.rst. A
text that is not as expected raises `ValueError`, `IndexError` or `KeyError`; callers treat all three as a gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Malformed = (ValueError, IndexError, KeyError)

SECTOR_BYTES = 512
"""A sector of /proc/diskstats, whatever the device's own sectors are."""

UNLIMITED = 1 << 60
"""Control groups of version 1 write a limit near 2**63 if there is none."""


class Stat(NamedTuple):
    """A line of /proc/PID/stat: times in clock ticks, memory in pages. `reaped`: of children that were waited for."""

    name: str
    state: str
    parent: int
    session: int
    minor_faults: int
    major_faults: int
    user: int
    system: int
    reaped_user: int
    reaped_system: int
    threads: int
    rss_pages: int
    blocked: int


def stat(text: bytes) -> Stat:
    """Parse /proc/PID/stat. The name may hold spaces and parentheses, so fields are counted from the last one."""
    opened, closed = text.index(b"("), text.rindex(b")")
    field = text[closed + 2 :].split()
    return Stat(
        name=text[opened + 1 : closed].decode(errors="replace"),
        state=field[0].decode(),
        parent=int(field[1]),
        session=int(field[3]),
        minor_faults=int(field[7]),
        major_faults=int(field[9]),
        user=int(field[11]),
        system=int(field[12]),
        reaped_user=int(field[13]),
        reaped_system=int(field[14]),
        threads=int(field[17]),
        rss_pages=int(field[21]),
        blocked=int(field[39]),
    )


def storage_bytes(text: bytes) -> tuple[int, int]:
    """Bytes read from and written to storage, from /proc/PID/io. Reads from the page cache are not included."""
    fields = table(text)
    return fields[b"read_bytes"], fields[b"write_bytes"]


def switches(text: bytes) -> tuple[int, int]:
    """Voluntary and involuntary context switches of one thread, from /proc/PID/task/TID/status."""
    at = text.rindex(b"\nvoluntary_ctxt_switches:")
    words = text[at:].split()
    return int(words[1]), int(words[3])


def table(text: bytes) -> dict[bytes, int]:
    """Numbers by name from lines such as `name: number`, as in /proc/PID/io. Kilobytes are converted to bytes."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(b":")
        words = rest.split()
        if colon and words and words[0].isdigit():
            found[name.strip()] = int(words[0]) * (1024 if words[1:] == [b"kB"] else 1)
    return found


def pairs(text: bytes) -> dict[bytes, int]:
    """Numbers by name from lines such as `name number`, as in cpu.stat and memory.stat of a control group."""
    return {words[0]: int(words[1]) for line in text.splitlines() if len(words := line.split()) == 2}


class CpuTimes(NamedTuple):
    """Clock ticks of all CPUs together since boot. `busy` is without `stolen`, which the hypervisor gave to others."""

    busy: int
    stolen: int
    total: int


def cpu_times(text: bytes) -> CpuTimes:
    """The first line of /proc/stat. Guests' time is in user time already."""
    words = text.split(b"\n", 1)[0].split()
    if words[0] != b"cpu":
        raise ValueError("no line of all CPUs")
    user, nice, system, idle, waiting, *more = map(int, words[1:])
    interrupts, soft, stolen = (*more, 0, 0, 0)[:3]
    busy = user + nice + system + interrupts + soft
    return CpuTimes(busy, stolen, busy + stolen + idle + waiting)


def last_pid(text: bytes) -> int:
    """The id of the newest process or thread on this machine, from /proc/loadavg."""
    return int(text.split()[4])


def running(text: bytes) -> int:
    """Threads of this machine that run or are ready to, from /proc/loadavg. The reader itself is one of them."""
    return int(text.split()[3].split(b"/")[0])


def pressure_seconds(text: bytes) -> float:
    """Seconds in which some task waited, from a file of /proc/pressure."""
    for line in text.splitlines():
        if line.startswith(b"some"):
            return int(line.rpartition(b"total=")[2]) / 1e6
    raise ValueError("no line `some`")


def disk_bytes(text: bytes, disks: Iterable[str]) -> tuple[int, int]:
    """Bytes read and written by these disks, from /proc/diskstats."""
    wanted = set(disks)
    read = written = found = 0
    for line in text.decode(errors="replace").splitlines():
        words = line.split()
        if words[2] in wanted:
            read += int(words[5])
            written += int(words[9])
            found += 1
    if not found:
        raise ValueError("none of these disks")
    return read * SECTOR_BYTES, written * SECTOR_BYTES


def is_disk(name: str) -> bool:
    """Whether an entry of /sys/block is a real disk: not memory, and no volume that lies on other disks."""
    return not name.startswith(("loop", "ram", "zram", "dm-", "md", "sr", "fd"))


def group_paths(text: bytes) -> dict[str, str]:
    """Path of a process' control group by controller, from /proc/PID/cgroup; "" is version 2."""
    found = {}
    for line in text.decode(errors="replace").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def ancestors(path: str) -> list[str]:
    """A control group's path and those above it, innermost first, ending with the root's: `/`."""
    parts = [part for part in path.split("/") if part and part != ".."]
    return ["/" + "/".join(parts[:count]) for count in range(len(parts), -1, -1)]


class Throttling(NamedTuple):
    """Periods of the CPU quota so far, and those in which it was used up."""

    periods: int
    throttled: int


def throttling(text: bytes) -> Throttling:
    """Read from cpu.stat of either version. Without a quota there are no periods."""
    fields = pairs(text)
    return Throttling(fields.get(b"nr_periods", 0), fields.get(b"nr_throttled", 0))


def limit_bytes(text: bytes) -> int | None:
    """memory.max or memory.limit_in_bytes. None is no limit."""
    word = text.strip()
    return None if word == b"max" or int(word) >= UNLIMITED else int(word)
