"""What the machine did while a window was timed: counters that the guest reads around it, and what the result holds."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck_doctor.documents.report import Surroundings as Told
from bottleneck_doctor.measure.windows import surroundings
from bottleneck_doctor.monitor import RunQueue
from bottleneck_doctor.runtime.process import surroundings as reading
from bottleneck_doctor.runtime.process.surroundings import Surroundings

Write = Callable[[str, str], None]
TICK = os.sysconf("SC_CLK_TCK")


@pytest.fixture(autouse=True)
def this_is_the_supervisor() -> Iterator[None]:
    reading.know_supervisor(json.dumps({"host": socket.gethostname(), "supervisor": os.getpid()}))
    yield
    reading.know_supervisor("")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return writer


OF_THIS_PROCESS = {"faults", "kernel"}
"""What no file of /proc tells."""


def machine(write: Write, *, busy: int = 0, stolen: int = 0, idle: int = 0, us: int = 0, periods: int = 0) -> None:
    """A machine whose CPUs were `busy`, `stolen` and `idle` for so many ticks since it began."""
    write("proc/stat", f"cpu  {100 + busy} 5 40 {900 + idle} 10 0 0 {7 + stolen} 0 0\ncpu0 1 2 3\n")
    write("proc/self/cgroup", "4:memory:/job\n2:cpu:/job\n0::/\n")
    write("groups/cpu/job/cpu.stat", f"nr_periods {10 + periods}\nnr_throttled {4 + periods // 4}\nthrottled_time 9\n")
    for what in ("cpu", "io"):
        text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        write(f"proc/pressure/{what}", text)


def test_counters_over_a_stretch(tmp_path: Path, write: Write) -> None:
    machine(write)
    around = Surroundings(str(tmp_path / "proc"), str(tmp_path / "groups"))
    assert around.told() == {}
    around.begin()
    machine(write, busy=TICK, stolen=TICK // 2, idle=TICK // 2, us=250_000, periods=20)
    around.end()
    told = {name: value for name, value in around.told().items() if name not in OF_THIS_PROCESS}
    assert told.pop("seconds") > 0
    assert "own" not in told  # Nobody of ours is in that /proc.
    assert told == pytest.approx(
        {
            "busy": 1.0,
            "stolen": 0.5,
            "capacity": 2.0,
            "cpu_pressure": 0.25,
            "io_pressure": 0.25,
            "periods": 20,
            "throttled": 5,
        }
    )


def test_what_lies_between_two_stretches_is_left_out(tmp_path: Path, write: Write) -> None:
    around = Surroundings(str(tmp_path / "proc"), str(tmp_path / "groups"))
    for ticks in (0, 5 * TICK):
        machine(write, busy=ticks)
        around.begin()
        machine(write, busy=ticks + TICK)
        around.end()
    around.end()
    assert around.told()["busy"] == pytest.approx(2.0)


def test_what_a_system_does_not_tell_is_left_out(tmp_path: Path, write: Write) -> None:
    around = Surroundings(str(tmp_path / "nowhere"), str(tmp_path / "groups"))
    around.begin()
    around.end()
    assert around.told().keys() - OF_THIS_PROCESS == {"seconds"}
    write("nowhere/stat", "of another make\n")
    write("nowhere/pressure/cpu", "")
    around.begin()
    machine(write)
    around.end()
    assert around.told().keys() - OF_THIS_PROCESS == {"seconds"}
    told = {name: value for name, value in around.told().items() if name not in OF_THIS_PROCESS}
    assert surroundings(told) == Told()


@pytest.mark.skipif(sys.platform == "win32", reason="getrusage")
def test_pages_that_this_process_asks_for_are_counted() -> None:
    pages = 3000
    around = Surroundings()
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        around.begin()
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1
        around.end()
    # The kernel may give several pages at once.
    assert pages / 16 <= around.told()["faults"] < 3 * pages
    assert 0 <= around.told()["kernel"] <= around.told()["seconds"] + 0.05


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("alive", [True, False])
def test_what_our_own_processes_compute_is_ours_whether_they_live_or_not(alive: bool) -> None:
    used = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\n"
    around = Surroundings()
    around.begin()
    with subprocess.Popen(
        [sys.executable, "-c", used + "sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        if not alive:
            child.communicate()
        began = time.process_time()
        while time.process_time() < began + 0.1:
            pass
        around.end()
        child.communicate()
    told = around.told()
    assert 0.39 < told["own"] < 0.8
    # How long a process that has ended waited for a CPU is lost, and nobody may take it for another program's.
    assert ("queued" in told) == alive
    assert (surroundings(told, runnable=9.0) or Told()).others_wanted is None or alive
    assert 0 <= told.get("queued", 0.0) < 20 * told["seconds"]
    assert told["busy"] > told["own"] - 0.15
    assert told["capacity"] == pytest.approx((os.cpu_count() or 1) * told["seconds"], rel=0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("which", [0, 1])
def test_of_two_stretches_one_in_which_a_process_ends_leaves_nothing_of_the_waiting(which: int) -> None:
    around = Surroundings()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        for stretch in range(2):
            around.begin()
            if stretch == which:
                child.communicate(b"\n")
            around.end()
    assert {"own", "seconds"} <= around.told().keys()
    assert "queued" not in around.told()


def test_a_supervisor_on_another_host_tells_nothing_of_who_is_ours() -> None:
    reading.know_supervisor(json.dumps({"host": "elsewhere", "supervisor": os.getpid()}))
    around = Surroundings()
    around.begin()
    around.end()
    assert "own" not in around.told()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_reading_takes_no_time_to_speak_of() -> None:
    around = Surroundings()
    taken = []
    for _ in range(20):
        began = time.thread_time()
        around.begin()
        taken.append(time.thread_time() - began)
    assert sorted(taken)[10] < 0.005


def test_as_the_result_holds_it() -> None:
    told = {"seconds": 2.0, "busy": 3.0, "stolen": 0.4, "capacity": 8.0, "own": 1.8, "queued": 0.1, "cpu_pressure": 0.5}
    assert surroundings(told) == Told(
        cpus=4.0, own_cpu=0.9, others_cpu=0.6, steal_share=0.05, cpu_pressure=0.25, own_queued=0.05
    )
    # Of three threads that wanted a CPU on average, 0.95 were ours. But others got 0.6 of four CPUs, and no more.
    assert surroundings(told, runnable=3.0) == replace(surroundings(told) or Told(), others_wanted=0.7425)
    assert surroundings(told, runnable=1.0) == replace(surroundings(told) or Told(), others_wanted=0.05)
    assert surroundings({"seconds": 2.0}, runnable=3.0) == Told()
    assert surroundings({"seconds": 2.0, "faults": 900.0, "kernel": 0.3}) == Told(faults=450.0, kernel_cpu=0.15)
    quota = surroundings({"seconds": 1.0, "periods": 10.0, "throttled": 3.0})
    assert quota is not None
    assert quota.throttled_share == 0.3
    # Ticks are coarser than our own clocks.
    short = surroundings({"seconds": 0.1, "busy": 0.09, "own": 0.0934})
    assert short is not None
    assert short.others_cpu == 0.0
    assert surroundings({}) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_thread_that_waits_for_a_cpu_is_told_as_waiting() -> None:
    # Three that compute on one CPU want three of it, whatever else runs there.
    spin = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\nwhile True: pass\n"
    three = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for each in three:
            assert each.stdout is not None
            each.stdout.readline()
        around = Surroundings()
        around.begin()
        time.sleep(0.5)
        around.end()
    finally:
        for each in three:
            each.kill()
            each.communicate()
    told = around.told()
    assert told["own"] + told["queued"] > 2.5 * told["seconds"] - 0.2
    assert told["queued"] > 1.5 * told["seconds"] - 0.2


def test_the_run_queue_is_looked_at_while_the_context_lasts(tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text("0.50 0.40 0.30 4/117 19836\n")
    began = time.perf_counter()
    with RunQueue(str(tmp_path), every=0.001) as queue:
        while queue.mean([(began, time.perf_counter())]) is None:
            assert time.perf_counter() < began + 10
            time.sleep(0.001)
    assert queue.mean([(began, time.perf_counter())]) == 3.0
    # Nobody looked then, and too few looks are none.
    assert queue.mean([(began - 2, began - 1)]) is None
    assert queue.mean([]) is None


@pytest.mark.parametrize("text", [None, "", "of another make\n"])
def test_a_run_queue_that_is_not_told_is_not_known(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "loadavg").write_text(text)
    with RunQueue(str(tmp_path), every=0.001) as queue:
        time.sleep(0.02)
    assert queue.mean([(0.0, 1e12)]) is None
