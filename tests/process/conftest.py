"""Starts guests for the tests of this folder, and fails a test that leaves anything behind on the machine."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bottleneck_doctor.session.session import Command

sys.path.insert(0, str(Path(__file__).parents[2]))  # `pytest` alone, unlike `python -m pytest`, leaves it out.

from tests.process.driver import Guest, write

MARK = "BOTTLENECK_DOCTOR_TEST"
"""A variable that every process of a test inherits, so that orphans are known as its own."""

GRACE = 3.0
"""Seconds that the kernel may take until the killed are gone."""

StartGuest = Callable[..., Guest]


@pytest.fixture
def guests() -> Iterator[list[Guest]]:
    """Guests that a test puts here are ended after it."""
    started: list[Guest] = []
    try:
        yield started
    finally:
        for each in started:
            each.close()


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Shells start background jobs with SIGINT ignored, which children inherit; ours are to be interrupted."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """After the test: no process of its own, nothing of a dead process in /dev/shm, no temporary folder.

    `tmp_path` is asked for so that it lies where it always does and not in the folder made here, which is short
    because the path of a socket must be.
    """
    folder = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))
    mark = folder.name
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    shared, children = _shared_memory(), _children()
    yield
    deadline = time.monotonic() + GRACE
    while True:
        left = {
            "processes": _processes_marked(mark) + sorted(_children() - children),
            "shared memory": sorted(_shared_memory() - shared),
            "folders": sorted(path.name for path in folder.glob("bottleneck-doctor-*")),
        }
        if not any(left.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)
    assert not any(left.values()), left


def _processes_marked(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.pid != os.getpid() and process.environ().get(MARK) == mark
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
        except psutil.Error:
            continue
    return found


def _children() -> set[str]:
    """Of the tests' own process; those of a unit test before (multiprocessing's tracker, say) stay until its end."""
    found = set()
    for child in psutil.Process().children():
        try:
            found.add(f"{child.pid} {child.name()}")
        except psutil.Error:
            continue
    return found


def _shared_memory() -> set[str]:
    """Entries that torch or multiprocessing made and whose process is dead."""
    entries = set()
    for name in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ():
        owner = re.match(r"torch_(\d+)_", name)
        if owner is None or not psutil.pid_exists(int(owner.group(1))):
            entries.add(name)
    # A semaphore names no owner. One that a living process holds is not left behind; of another test, it may be.
    return entries - _held(entries) if entries else entries


def _held(entries: set[str]) -> set[str]:
    """Those that some living process has mapped. By inode: glibc makes a semaphore under another name and links it."""
    mapped = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            mapped |= {int(line.split()[4]) for line in maps.read_text().splitlines() if "/dev/shm/" in line}
    held = set()
    for name in entries:
        with contextlib.suppress(OSError):
            if os.stat(os.path.join("/dev/shm", name)).st_ino in mapped:
                held.add(name)
    return held


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[StartGuest]:
    """Start a script under a guest: `guest(text, "--its", "arguments")`. All are ended after the test."""
    started: list[Guest] = []

    def start(text: str, *arguments: str, environment: dict[str, str] | None = None) -> Guest:
        script = write(tmp_path, text)
        command = Command((sys.executable, str(script), *arguments), tmp_path, environment or {})
        started.append(Guest(command))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.close()
