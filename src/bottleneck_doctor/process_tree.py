"""A process and all that it started: who they are, and their end without remains."""

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
"""Torch's name of a segment of shared memory holds the process that made it."""
_PATIENCE = 3.0
"""Seconds until the killed are gone."""


def descendants(pid: int) -> list[psutil.Process]:
    """Children, their children, and so on; none of a process that is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def children(pid: int) -> list[psutil.Process]:
    """Those that the process started itself; none of one that is gone."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children()
    return []


def kill(process: subprocess.Popen[bytes], family: list[psutil.Process]) -> None:
    """Kill a process, its group and its descendants as known before it ended, and wait until they are gone."""
    family = [*family, *descendants(process.pid)]
    # Loader workers outlive their parent by seconds; they are members of its group, if no longer its descendants.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()
    psutil.wait_procs(family, timeout=_PATIENCE)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
    unlink_segments([process.pid, *(member.pid for member in family)])


def unlink_segments(pids: Iterable[int]) -> None:
    """Remove the segments of shared memory that these processes made, as far as they are gone.

    Torch takes a segment's name away as soon as it has opened it. A worker that is killed between the two leaves the
    name, and with it the memory, until the machine is started anew.
    """
    gone = {pid for pid in pids if not psutil.pid_exists(pid)}
    with contextlib.suppress(OSError):
        for path in SHARED_MEMORY.iterdir():
            named = _SEGMENT.fullmatch(path.name)
            if named is not None and int(named[1]) in gone:
                with contextlib.suppress(OSError):
                    path.unlink()
