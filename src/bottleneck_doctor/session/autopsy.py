"""What the machine can say about a probe that failed: stacks of a hang, size of /dev/shm, kills for lack of memory.

The edge of `failure`: asks py-spy and /proc. What can't be found out is left out, and nothing here raises.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil

from bottleneck_doctor.profiling.origin import Origin
from bottleneck_doctor.profiling.pyspy import find_tool
from bottleneck_doctor.session.failure import Frame, Stack

_MOST_WORKERS = 2
"""Workers are alike: if two hang, all do."""
_PATIENCE = 5.0
_WORKER_LOOP = "_worker_loop"
"""The function of torch.utils.data that every loader worker runs."""


def stacks(pid: int, tool: str | None = None) -> list[Stack]:
    """The stacks of process `pid` and of some loader workers among its children. Takes a few tenths of a second."""
    tool = tool or find_tool()
    if tool is None:
        return []
    found: list[Stack] = []
    for each in (pid, *_children(pid)):
        stack = _stack(tool, each)
        if stack is not None and (each == pid or stack.worker):
            found.append(stack)
        if sum(seen.worker for seen in found) >= _MOST_WORKERS:
            break
    return found


def _children(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)][:8]
    except psutil.Error:
        return []


def _stack(tool: str, pid: int) -> Stack | None:
    command = [tool, "dump", "--json", "--full-filenames", "--pid", str(pid)]
    locked = _waits_for_lock(pid)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
        threads = json.loads(done.stdout)
    except (OSError, ValueError, RecursionError, subprocess.TimeoutExpired):
        return None
    return read(threads, pid, locked, Origin())


def read(threads: Any, pid: int, locked: bool, origin: Origin) -> Stack | None:
    """The main thread's stack from the output of `py-spy dump --json`; None if there is none."""
    if not isinstance(threads, list) or not all(isinstance(each, dict) for each in threads):
        return None
    main = next((thread for thread in threads if thread.get("os_thread_id") == pid), None) or (
        threads[-1] if threads else None
    )
    if main is None:
        return None
    try:
        frames = [
            Frame(str(each["name"]), each["filename"], int(each["line"]), origin.is_own(each["filename"]))
            for each in main["frames"]
        ]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None
    loop = next((place for place, frame in enumerate(frames) if frame.function == _WORKER_LOOP), None)
    # Below its own loop, a forked worker's stack shows what the main process was doing at the fork.
    return Stack(frames if loop is None else frames[: loop + 1], worker=loop is not None, locked=locked)


def _waits_for_lock(pid: int) -> bool:
    """Whether the main thread of a process waits for a lock (a futex), according to the kernel."""
    try:
        return Path(f"/proc/{pid}/wchan").read_text(errors="replace").startswith("futex")
    except OSError:
        return False


def shared_memory() -> int | None:
    """Size of /dev/shm in bytes; None if there is none."""
    try:
        seen = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    return seen.f_frsize * seen.f_blocks


def memory_kills() -> int | None:
    """How many processes the kernel has killed for lack of memory since it started, inside control groups or not; None
    if it does not say."""
    try:
        lines = Path("/proc/vmstat").read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
