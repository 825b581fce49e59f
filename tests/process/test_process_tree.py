"""A process and all that it started are ended, and what they had in shared memory goes with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bottleneck_doctor.session import process_tree

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


SPAWNING = """
import multiprocessing, os, signal, sys, time
from multiprocessing import shared_memory

def work(lock):
    with lock:
        time.sleep(60)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    lock = context.Lock()
    context.Process(target=work, args=(lock,)).start()
    memory = shared_memory.SharedMemory(create=True, size=8)
    print(memory.name, lock._semlock.name, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not process_tree.SHARED_MEMORY.is_dir(), reason="there is no /dev/shm here")
@pytest.mark.parametrize("first_gone", [pytest.param(False, marks=pytest.mark.slow(together=True)), True])
def test_names_that_python_looks_after_go_with_their_processes(tmp_path: Path, first_gone: bool) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(SPAWNING)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        memory, lock = process.stdout.readline().decode().split()
        names = [process_tree.SHARED_MEMORY / memory, process_tree.SHARED_MEMORY / f"sem.{lock.lstrip('/')}"]
        assert all(name.exists() for name in names)
        family = process_tree.descendants(process.pid)
        if first_gone:
            process.kill()
            process.wait()
        process_tree.kill(process, family)
    assert not any(name.exists() for name in names)
    assert not any(member.is_running() for member in family)


def test_a_process_that_is_gone_has_no_family() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert process_tree.descendants(process.pid) == []
    assert process_tree.children(process.pid) == []
