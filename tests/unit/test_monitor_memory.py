"""Memory of a side's processes, as the kernel tells it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bottleneck_doctor.monitor.memory import WorkerWatch, free_bytes, own_bytes, peak_bytes

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this system has no such /proc")


def process(proc: Path, pid: int, *, peak: int, private: int) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tpython\nVmPeak:\t 99 kB\nVmHWM:\t {peak} kB\nVmRSS:\t 5 kB\n")
    (folder / "smaps_rollup").write_text(
        "55-77 ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 800 kB\n"
        f"Private_Clean: 1 kB\nPrivate_Dirty: {private} kB\n"
    )


def test_figures_of_proc(tmp_path: Path) -> None:
    process(tmp_path, 7, peak=100, private=30)
    process(tmp_path, 8, peak=50, private=20)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "smaps_rollup").write_text("")
    assert peak_bytes([7, 8], tmp_path) == 150 * 1024
    assert own_bytes([7, 8], tmp_path) == 52 * 1024
    assert peak_bytes([7, 9], tmp_path) is None
    assert own_bytes([7, 9], tmp_path) == 31 * 1024, "a worker that has ended has none"
    assert own_bytes([], tmp_path) == 0
    assert peak_bytes([], tmp_path) is None
    assert own_bytes([7], tmp_path / "nowhere") is None


@linux
def test_what_a_child_has_for_itself_is_seen() -> None:
    code = "import sys; data = bytearray(b'x') * (48 << 20); print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with WorkerWatch([os.getpid()]) as watch:
            pass
        assert watch.peak is not None
        assert watch.peak > 48 << 20
        with WorkerWatch([child.pid]) as alone:
            pass
        assert alone.peak == 0
        assert (peak_bytes([child.pid]) or 0) > 48 << 20
    finally:
        child.communicate()


def test_further_processes_may_have_what_is_free() -> None:
    free = free_bytes()
    assert free is not None
    assert 0 < free <= psutil.virtual_memory().total
