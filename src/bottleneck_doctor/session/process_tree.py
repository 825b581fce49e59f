"""A process and everything that it started: finds these processes, and ends them without remains."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil

SHARED_MEMORY = Path("/dev/shm")
_SEGMENT = re.compile(r"torch_(\d+)_\d+_\d+")
"""In torch, the name of a segment of shared memory contains the id of the process that made it."""
_PATIENCE = 3.0
"""Seconds to wait until killed processes are gone."""
_MOST_ROUNDS = 3
"""How often to look for processes that were started meanwhile."""
_JANITORS = ("multiprocessing.resource_tracker", "torch_shm_manager")
"""Names in the command lines of processes that clean up. Python's removes semaphores and shared memory of spawned
workers and forkservers; torch's removes segments that are shared by files."""


def descendants(pid: int) -> list[psutil.Process]:
    """Children, their children, and so on; empty if the process is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def children(pid: int) -> list[psutil.Process]:
    """The processes that this one started itself; empty if it is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children()
    return []


def lives(pid: int) -> bool:
    """Whether there is a process with this id that has not ended."""
    with contextlib.suppress(psutil.Error):
        return _lives(psutil.Process(pid))
    return False


def kill(process: subprocess.Popen[bytes], family: list[psutil.Process]) -> None:
    """Kill a process, its group and its descendants (`family`, as known before it ended), and wait until they are gone.

    Processes that clean up after the others, mainly names in shared memory, get time to do so first.
    """
    known = {member.pid: member for member in (*family, *descendants(process.pid))}
    janitors: list[psutil.Process] = []
    for _ in range(_MOST_ROUNDS):
        # Loader workers outlive their parent by seconds. By then they are no longer its descendants, but still in its
        # group. The process itself is left to its own `wait`, because only that learns its exit code.
        known |= {member.pid: member for member in _group(process.pid) if member.pid != process.pid}
        alive = [member for member in known.values() if _lives(member) and member not in janitors]
        janitors += [member for member in alive if _clears_up(member)]
        others = [member for member in alive if member not in janitors]
        process.kill()
        if not others:
            break
        for member in others:
            with contextlib.suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(others, timeout=_PATIENCE)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    psutil.wait_procs(janitors, timeout=_PATIENCE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    rest = [member for member in known.values() if _lives(member)]
    for member in rest:
        with contextlib.suppress(psutil.Error):
            member.kill()
    psutil.wait_procs(rest, timeout=_PATIENCE)
    unlink_segments([process.pid, *known])


def _group(leader: int) -> list[psutil.Process]:
    """The members of a process group."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(pid) == leader:
                found.append(psutil.Process(pid))
    return found


def _lives(member: psutil.Process) -> bool:
    """Whether it exists and is no zombie. In some containers nobody adopts orphans, so zombies stay forever."""
    with contextlib.suppress(psutil.Error):
        return bool(member.is_running() and member.status() != psutil.STATUS_ZOMBIE)
    return False


def _clears_up(member: psutil.Process) -> bool:
    """Whether it ends by itself once the processes that it works for are gone, and removes what they left behind."""
    with contextlib.suppress(psutil.Error):
        return any(name in word for word in member.cmdline() for name in _JANITORS)
    return False


def unlink_segments(pids: Iterable[int]) -> None:
    """Remove the segments of shared memory that these processes made, if the processes are gone.

    Torch removes a segment's name as soon as it has opened the segment. A worker that is killed between the two leaves
    the name, and with it the memory, until the machine is restarted.
    """
    gone = {pid for pid in pids if not psutil.pid_exists(pid)}
    with contextlib.suppress(OSError):
        for path in SHARED_MEMORY.iterdir():
            named = _SEGMENT.fullmatch(path.name)
            if named is not None and int(named[1]) in gone:
                with contextlib.suppress(OSError):
                    path.unlink()
