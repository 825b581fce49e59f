"""A process and all that it started are ended, and what they had in shared memory goes with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bottleneck_doctor import process_tree

pytestmark = pytest.mark.process

CHILD = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(f"/dev/shm/torch_{os.getpid()}_12345_0").touch()
print("here", flush=True)
time.sleep(60)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


@pytest.mark.skipif(not process_tree.SHARED_MEMORY.is_dir(), reason="there is no /dev/shm here")
def test_nothing_stays_of_a_tree_that_was_killed() -> None:
    other = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True)
    assert other.stdout is not None
    assert process.stdout is not None
    with other.stdout, process.stdout:
        assert other.stdout.readline() == process.stdout.readline() == b"here\n"
        family = process_tree.descendants(process.pid)
        (child,) = family
        kept, left = (Path(f"/dev/shm/torch_{pid}_12345_0") for pid in (other.pid, child.pid))
        assert kept.exists()
        assert left.exists()
        process_tree.kill(process, family)
        assert not psutil.pid_exists(child.pid)
        assert not left.exists()
        process_tree.unlink_segments([other.pid])
        assert kept.exists(), "its process lives"
        other.kill()
        other.wait()
        process_tree.unlink_segments([other.pid])
        assert not kept.exists()


def test_a_process_that_is_gone_has_no_family() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert process_tree.descendants(process.pid) == []
    assert process_tree.children(process.pid) == []
