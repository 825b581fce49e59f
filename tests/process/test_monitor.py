"""Real processes, watched: figures as what they do, and no trace of a process that dies in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP

from bottleneck_doctor.documents.report import ProcessUse, Setting, Utilization, Window
from bottleneck_doctor.monitor import UsageWatch, utilization
from bottleneck_doctor.monitor.accounts import Accounts
from bottleneck_doctor.monitor.psutil_backend import PsutilMachine, PsutilTree

pytestmark = pytest.mark.process

Start = Callable[..., "subprocess.Popen[str]"]

WORKERS = """
import multiprocessing, os, sys, time

def work():
    while True:
        time.sleep(0.02)
        sum(range(20000))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work, daemon=True) for _ in range(2)]
    for each in workers:
        each.start()
    print(*[each.pid for each in workers], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started = []

    def starter(script: str, *arguments: str) -> subprocess.Popen[str]:
        path = tmp_path / "train.py"
        path.write_text(script)
        process = subprocess.Popen(
            [sys.executable, str(path), *arguments],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield starter
    for process in started:
        family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for each in family:
            each.kill()
        process.kill()
        process.communicate()
        psutil.wait_procs(family, timeout=5)


def window(started: float, ended: float) -> Window:
    return Window(
        session=1, rank=0, block=0, setting={}, mode="timed", steps=1, samples=1.0, seconds=ended - started,
        lead_in_steps=0, lead_in_seconds=0.0, wait_seconds=0.0, turn_seconds=None, whole_epochs=0, queue_change=0,
        ready_share=None, effect={}, started=started, ended=ended, label="baseline",
    )  # fmt: skip


def watched(pid: int, seconds: float, meanwhile: Callable[[], Any] = lambda: None) -> Utilization:
    """Watch a process for a while; one window that spans all of it."""
    watch = UsageWatch(pid)
    watch.start()
    time.sleep(0.3)
    begun = time.perf_counter()
    meanwhile()
    time.sleep(seconds)
    ended = time.perf_counter()
    watch.stop()
    found = utilization([watch], [window(begun, ended)])
    assert found is not None
    assert len(found.windows) == 1
    return found


def role(found: Utilization, name: str) -> ProcessUse:
    return next(each for each in found.windows[0].processes if each.role == name)


def known(value: float | None) -> float:
    assert value is not None
    return value


def test_a_process_that_burns_a_core(start: Start) -> None:
    process = start("print('on', flush=True)\nwhile True: pass")
    assert process.stdout is not None
    process.stdout.readline()
    before = psutil.Process(process.pid).cpu_times().user
    begun = time.perf_counter()
    found = watched(process.pid, 2.0)
    rate = (psutil.Process(process.pid).cpu_times().user - before) / (time.perf_counter() - begun)
    main = role(found, "main")
    # Others may keep the machine busy: what the kernel says it got is what has to come out.
    assert known(main.cpu_user) == pytest.approx(rate, abs=0.25)
    assert known(main.cpu_user) > 0.15
    assert known(main.rss_bytes) > 3e6
    assert main.processes == 1
    assert role(found, "workers") == ProcessUse(role="workers", processes=0)
    assert found.windows[0].samples > 5
    assert all(value is None or value >= 0 for values in found.series.values() for value in values)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bytes of a process are known on Linux only")
def test_a_process_that_writes(start: Start, tmp_path: Path) -> None:
    process = start("import os\ninput()\nwith open('out', 'wb') as f: f.write(bytes(20 << 20)); f.flush(); "
                    "os.fsync(f.fileno())\ninput()")  # fmt: skip
    assert process.stdin is not None

    def write() -> None:
        # What is written right at the start counts only in part: the sample before it belongs to what was before, too.
        time.sleep(0.5)
        print(file=process.stdin, flush=True)

    found = watched(process.pid, 2.0, write)
    assert (tmp_path / "out").stat().st_size == 20 << 20
    seconds = found.spans[0].end - found.spans[0].start
    written = known(role(found, "main").written_bytes) * seconds
    if _in_memory(tmp_path):
        assert written < 20 << 20
    else:
        assert 0.8 * (20 << 20) < written < 1.5 * (20 << 20)


def _in_memory(folder: Path) -> bool:
    best = max((part for part in psutil.disk_partitions(all=True) if str(folder).startswith(part.mountpoint)),
               key=lambda part: len(part.mountpoint))  # fmt: skip
    return best.fstype in ("tmpfs", "ramfs")


@pytest.mark.parametrize(
    "method",
    ["fork", pytest.param("spawn", marks=pytest.mark.slow), pytest.param("forkserver", marks=pytest.mark.slow)],
)
def test_workers_one_of_which_dies(start: Start, method: str) -> None:
    process = start(WORKERS, method)
    assert process.stdout is not None
    workers = [int(word) for word in process.stdout.readline().split()]
    time.sleep(0.5)
    both = watched(process.pid, 1.5)
    use = role(both, "workers")
    assert use.processes == 2
    assert 0 < known(use.cpu_user) + known(use.cpu_system) < 2.1
    assert known(use.threads) >= 2
    if sys.platform.startswith("linux"):
        assert known(use.voluntary_switches) > 10, "each sleeps forty times a second"
    one = watched(process.pid, 2.0, lambda: os.kill(workers[0], 9))
    counts = [value for value in one.series["workers"] if value is not None]
    assert (counts[0], counts[-1]) == (2, 1)
    assert known(role(one, "workers").rss_bytes) > 0


def test_the_end_of_the_session_ends_the_watch(start: Start) -> None:
    process = start("import sys\nsys.stdin.read()")
    watch = UsageWatch(process.pid)
    watch.start()
    time.sleep(0.5)
    process.kill()
    process.wait()
    time.sleep(0.5)
    assert watch.recording is not None, "it ended by itself"
    watch.stop()
    watch.stop()


def test_a_process_that_is_not_there() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    watch = UsageWatch(process.pid)
    watch.start()
    time.sleep(0.3)
    watch.stop()
    assert utilization([watch], []) is None or watch.recording is not None


def test_many_watches_leave_no_file_and_no_thread(start: Start) -> None:
    process = start("import sys\nsys.stdin.read()")
    me = psutil.Process()

    def round_trip() -> None:
        watch = UsageWatch(process.pid)
        watch.start()
        time.sleep(0.25)
        watch.stop()

    round_trip()
    before = me.num_fds(), me.num_threads()
    for _ in range(4):
        round_trip()
    assert (me.num_fds(), me.num_threads()) == before


def test_the_way_without_proc(start: Start) -> None:
    process = start(WORKERS, "spawn")
    assert process.stdout is not None
    process.stdout.readline()
    tree, accounts, machine = PsutilTree(process.pid), Accounts(), PsutilMachine()
    accounts.tick(0.0, tree.read(0.0))
    machine.read(0.0)
    tree.switches()
    time.sleep(1.0)
    row = accounts.tick(1.0, tree.read(1.0))
    assert (row["main.processes"], row["workers.processes"], row["doctor.processes"]) == (1, 2, 1)
    assert 0 < row["workers.cpu_user"] < 2.1
    assert row["workers.read_bytes"] != row["workers.read_bytes"]
    assert tree.switches()["workers"][0] > 0
    assert machine.read(1.0)["cores_busy"] > 0
    tree.close()


@pytest.mark.slow
def test_windows_of_a_guest_lie_on_the_same_clock(guest: StartGuest) -> None:
    """Workers are there in the window that asked for them and in no other, by the times that the guest stamped."""
    script = guest(LOOP.replace("Rows()", "Rows(100000, seconds=0.005)"))
    script.found()
    assert script.session.pid is not None
    watch = UsageWatch(script.session.pid)
    watch.start()
    time.sleep(0.3)
    windows = []
    settings: list[tuple[str, Setting]] = [("baseline", {}), ("num_workers=2", {"num_workers": 2}), ("baseline", {})]
    for label, setting in settings:
        done = script.window(setting, lead_in=6, steps=120)
        assert done.status == "ok"
        windows.append(replace(window(done.started, done.ended), lead_in_seconds=done.lead_in_seconds,
                               seconds=done.seconds, setting=setting, label=label))  # fmt: skip
    watch.stop()
    found = utilization([watch], windows)
    assert found is not None
    assert [use.label for use in found.windows] == ["baseline", "num_workers=2", "baseline"]
    counts = [next(each.processes for each in use.processes if each.role == "workers") for use in found.windows]
    assert counts == [0, 2, 0]
    assert all(use.samples >= 3 for use in found.windows)
