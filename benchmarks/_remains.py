"""What an examination leaves behind: files that differ, processes, shared memory, sockets and temporary folders.

Processes of an examination are known by a variable of the environment, `MARK`, that all of them inherit.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Collection
from pathlib import Path

import psutil

MARK = "BOTTLENECK_DOCTOR_BENCHMARK"
SETTLES = 3.0
"""Seconds that the kernel may take until the killed are gone."""


def hashes(*folders: Path, without: Collection[str] = ("__pycache__",)) -> dict[str, str]:
    """A digest of every file, and of every folder's name.

    Left out is what lies in folders of the names `without`: by default what Python itself caches of modules.
    """
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not set(without).isdisjoint(path.parts):
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            found[str(path.relative_to(folder.parent))] = digest
    return found


def difference(before: dict[str, str], after: dict[str, str]) -> str:
    """What is gone, new or changed; "" where nothing is."""
    told = []
    for word, names in (
        ("gone", before.keys() - after.keys()),
        ("new", after.keys() - before.keys()),
        ("changed", {name for name in before.keys() & after.keys() if before[name] != after[name]}),
    ):
        if names:
            told.append(f"{word}: {', '.join(sorted(names)[:3])}{' …' if len(names) > 3 else ''}")
    return "; ".join(told)


def left_behind(mark: str, shared: Collection[str], temporary: Path) -> str:
    """What is still there once the killed had time to go; "" where nothing is."""
    deadline = time.monotonic() + SETTLES
    while True:
        told = [f"process {each.pid} {' '.join(command)[:80]}" for each, command in processes(mark)]
        told += [f"shared memory {name}" for name in sorted(shared_memory() - set(shared))]
        told += [f"in the temporary folder {path.name}" for path in sorted(temporary.iterdir())]
        told += [f"socket {name}" for name in sockets(str(temporary))]
        if not told or time.monotonic() > deadline:
            return "; ".join(told)
        time.sleep(0.1)


def processes(mark: str) -> list[tuple[psutil.Process, list[str]]]:
    """The living that inherited the mark, with their commands."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append((process, process.cmdline()))
        except psutil.Error:
            continue
    return found


def shared_memory() -> set[str]:
    """What torch and multiprocessing keep in /dev/shm, and whose process is not alive any more."""
    found = set()
    for name in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ():
        owner = re.match(r"torch_(\d+)_", name)
        dead = owner is None or not psutil.pid_exists(int(owner[1]))
        if dead and name.startswith(("torch_", "psm_", "sem.mp-")):
            found.add(name)
    return found


def sockets(folder: str) -> list[str]:
    """Local sockets bound to a path in `folder`, as the kernel lists them."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    except OSError:
        return []
    return sorted({line.split()[-1] for line in lines if folder in line})
