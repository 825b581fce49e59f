"""The machine and a process tree read from folders made up like /proc and /sys: what is there, and what is missing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bottleneck_doctor.monitor.machine import LinuxMachine
from bottleneck_doctor.monitor.tree import NO_DELAYS, PAGE, TICK, LinuxTree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads files as Linux has them")

Write = Callable[[str, str], None]
GIGABYTE = 1 << 30


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # In place: readers keep their files open.
        with open(file, "r+" if file.exists() else "w") as opened:
            opened.write(text)
            opened.truncate()

    return writer


def a_machine(write: Write) -> None:
    write("proc/stat", "cpu 1000 0 1000 5000 100 0 0 0 0 0\n")
    write("proc/meminfo", "MemAvailable: 8388608 kB\nBuffers: 1024 kB\nCached: 3072 kB\nShmem: 1024 kB\n")
    write("proc/diskstats", " 8 0 sda 1 1 1000 1 1 1 2000 1\n 8 1 sda1 1 1 1000 1 1 1 2000 1\n")
    write("sys/block/sda/size", "1")
    write("sys/block/loop0/size", "1")
    for what in ("io", "cpu", "memory"):
        write(f"proc/pressure/{what}", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n")


def test_rates_since_the_last_reading(tmp_path: Path, write: Write) -> None:
    a_machine(write)
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    first = machine.read(10.0)
    assert first == {"memory_available_bytes": 8 * GIGABYTE, "page_cache_bytes": 3 << 20}
    write("proc/stat", f"cpu {1000 + TICK} 0 {1000 + TICK // 2} {5000 + TICK // 4} 100 0 0 {TICK // 4} 0 0\n")
    write("proc/diskstats", " 8 0 sda 1 1 1100 1 1 1 2400 1\n 8 1 sda1 1 1 1100 1 1 1 2400 1\n")
    write("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1125000\n")
    row = machine.read(10.5)
    assert row["cores_busy"] == pytest.approx(3.0)
    assert row["steal_share"] == pytest.approx(0.125)
    assert (row["read_bytes"], row["written_bytes"]) == (100 * 512 * 2, 400 * 512 * 2)
    assert row["io_pressure"] == pytest.approx(0.25)
    assert row["cpu_pressure"] == 0.0
    assert any("clock" in word for word in machine.missing)
    machine.close()


def test_an_empty_machine_is_all_gaps(tmp_path: Path) -> None:
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    assert machine.read(1.0) == {}
    assert machine.read(2.0) == {}
    text = "\n".join(machine.missing)
    for what in ("Busy cores", "Memory", "disks", "Pressure (io)", "control group", "clock"):
        assert what in text
    machine.close()


def test_broken_files_are_gaps(tmp_path: Path, write: Write) -> None:
    a_machine(write)
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    machine.read(1.0)
    for path in ("stat", "meminfo", "diskstats", "pressure/io"):
        write(f"proc/{path}", "what a kernel of the future may write")
    assert machine.read(2.0).keys() == {"cpu_pressure", "memory_pressure"}
    machine.close()


def test_a_container_of_version_2(tmp_path: Path, write: Write) -> None:
    a_machine(write)
    write("proc/7/cgroup", "0::/pod/train\n")
    group = "sys/fs/cgroup/pod/train"
    write(f"{group}/cpu.stat", "usage_usec 1\n")
    write("sys/fs/cgroup/pod/cpu.stat", "usage_usec 1\nnr_periods 100\nnr_throttled 10\nthrottled_usec 5\n")
    write(f"{group}/memory.max", "max\n")
    write("sys/fs/cgroup/pod/memory.max", f"{4 * GIGABYTE}\n")
    write("sys/fs/cgroup/pod/memory.current", f"{3 * GIGABYTE}\n")
    write("sys/fs/cgroup/pod/memory.stat", f"anon 5\ninactive_file {GIGABYTE}\n")
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    assert machine.read(1.0)["memory_available_bytes"] == 2 * GIGABYTE
    write("sys/fs/cgroup/pod/cpu.stat", "usage_usec 1\nnr_periods 120\nnr_throttled 15\nthrottled_usec 9\n")
    assert machine.read(2.0)["throttled_share"] == pytest.approx(0.25)
    machine.close()


def test_a_container_of_version_1_whose_path_is_the_hosts(tmp_path: Path, write: Write) -> None:
    a_machine(write)
    write("proc/7/cgroup", "3:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n")
    write("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2 * GIGABYTE}\n")
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", f"{2 * GIGABYTE}\n")
    write("sys/fs/cgroup/memory/memory.stat", f"inactive_file 3\ntotal_inactive_file {GIGABYTE}\n")
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    assert machine.read(1.0)["memory_available_bytes"] == GIGABYTE
    write("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 20\nnr_throttled 10\nthrottled_time 9\n")
    assert machine.read(2.0)["throttled_share"] == 1.0
    machine.close()


def test_clock_of_the_cpus(tmp_path: Path, write: Write) -> None:
    for cpu in range(16):
        write(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", "2000000\n")
    machine = LinuxMachine(7, proc=str(tmp_path / "proc"), sys=str(tmp_path / "sys"))
    assert machine.clock(100.0) == pytest.approx(2000)
    assert machine.clock(100.5) is None, "not so soon again"
    machine.close()


# -- the process tree --------------------------------------------------------------------------------------------------


def a_process(write: Write, pid: int, parent: int, *, name: str = "python", command: str = "python\0train.py\0",
              user: int = 0, state: str = "S", newest: int | None = None, session: int = 7) -> None:  # fmt: skip
    fields = [state, parent, session, session, 0, -1, 0, 100, 0, 5, 0, user, 0, 0, 0, 20, 0, 3, 0, 99, 0, 25]
    rest = [0] * 17 + [2 * TICK] + [0] * 4
    write(f"proc/{pid}/stat", f"{pid} ({name}) " + " ".join(map(str, [*fields, *rest])) + "\n")
    write(f"proc/{pid}/cmdline", command)
    write(f"proc/{pid}/io", "read_bytes: 4096\nwrite_bytes: 0\n")
    write(f"proc/{pid}/task/{pid}/status", "Name: x\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n")
    write("proc/loadavg", f"0.1 0.1 0.1 1/99 {pid if newest is None else newest}\n")


def tree_of(tmp_path: Path) -> LinuxTree:
    return LinuxTree(7, own=5, proc=str(tmp_path / "proc"))


def roles(tree: LinuxTree, now: float) -> dict[int, str]:
    return {pid: member.role for pid, member in tree.read(now).items()}


def test_roles(tmp_path: Path, write: Write) -> None:
    a_process(write, 1, 0, name="init", session=1)
    a_process(write, 5, 1, command="doctor\0", session=5)
    a_process(write, 6, 5, command="py-spy\0", session=5)
    a_process(write, 7, 5)
    a_process(write, 8, 7, name="odd) R 1 (name")
    a_process(write, 9, 7, command="python\0-c\0from multiprocessing.spawn import spawn_main\0")
    a_process(write, 10, 7, command="python\0-c\0from multiprocessing.forkserver import main\0")
    a_process(write, 11, 10, command="python\0-c\0from multiprocessing.forkserver import main\0")
    a_process(write, 12, 7, command="python\0-c\0from multiprocessing.resource_tracker import main\0")
    a_process(write, 13, 8, command="ffmpeg\0")
    a_process(write, 14, 1, command="daemon\0")
    a_process(write, 99, 1, command="neighbour\0", session=99)
    tree = tree_of(tmp_path)
    assert roles(tree, 1.0) == {
        5: "doctor", 6: "doctor", 7: "main", 8: "workers", 9: "workers", 10: "other", 11: "workers", 12: "other",
        13: "other", 14: "other",
    }  # fmt: skip
    tree.close()


def test_where_torch_names_its_workers_others_are_none(tmp_path: Path, write: Write) -> None:
    a_process(write, 7, 5)
    a_process(write, 8, 7, name="pt_data_worker")
    a_process(write, 9, 7)
    tree = tree_of(tmp_path)
    assert roles(tree, 1.0) == {7: "main", 8: "workers", 9: "workers"}
    assert roles(tree, 20.0) == {7: "main", 8: "workers", 9: "other"}, "a pool of the user's own"
    tree.close()


def test_processes_come_and_go(tmp_path: Path, write: Write) -> None:
    a_process(write, 7, 5)
    tree = tree_of(tmp_path)
    reading = tree.read(1.0)[7].reading
    assert (reading.threads, reading.rss_bytes, reading.read_bytes) == (3, 25 * PAGE, 4096)
    a_process(write, 8, 7, newest=7)
    assert roles(tree, 1.2) == {7: "main"}, "nothing new was made, so nobody looked"
    a_process(write, 8, 7)
    assert roles(tree, 1.4) == {7: "main", 8: "workers"}
    write("proc/8/stat", "")
    shutil.rmtree(tmp_path / "proc/8")
    assert roles(tree, 1.6) == {7: "main"}
    tree.close()


def test_children_of_the_main_process_are_seen_between_two_listings(tmp_path: Path, write: Write) -> None:
    a_process(write, 7, 5)
    write("proc/7/task/7/children", "")
    tree = tree_of(tmp_path)
    assert roles(tree, 1.0) == {7: "main"}
    a_process(write, 8, 7, newest=7)
    write("proc/7/task/7/children", "8 9 ")
    assert roles(tree, 1.1) == {7: "main", 8: "workers"}, "9 is gone already"
    write("proc/8/stat", "")
    shutil.rmtree(tmp_path / "proc/8")
    write("proc/7/task/7/children", "")
    assert roles(tree, 1.2) == {7: "main"}
    tree.close()


def test_a_child_that_becomes_another_program_is_no_worker(tmp_path: Path, write: Write) -> None:
    a_process(write, 7, 5)
    a_process(write, 8, 7)
    tree = tree_of(tmp_path)
    assert roles(tree, 1.0)[8] == "workers"
    a_process(write, 8, 7, command="nvidia-smi\0")
    assert roles(tree, 1.1)[8] == "other"
    tree.close()


@pytest.mark.parametrize("accounted", [True, False])
def test_time_blocked_on_disks(tmp_path: Path, write: Write, accounted: bool) -> None:
    write("proc/sys/kernel/task_delayacct", "1\n" if accounted else "0\n")
    a_process(write, 7, 5, state="D")
    tree = tree_of(tmp_path)
    before = tree.read(1.0)[7].reading.blocked
    after = tree.read(1.3)[7].reading.blocked
    if accounted:
        assert (before, after) == (2.0, 2.0), "as the kernel counts it"
    else:
        assert after - before == pytest.approx(0.3), "from the state that it was seen in"
    assert (NO_DELAYS in tree.missing) is not accounted
    tree.close()


def test_switches_and_pss(tmp_path: Path, write: Write) -> None:
    a_process(write, 7, 5)
    tree = tree_of(tmp_path)
    tree.read(1.0)
    assert tree.switches() == {}, "what it did before it was watched is not counted"
    a_process(write, 8, 7)
    tree.read(1.2)
    status = "Name: x\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t4\n"
    write("proc/7/task/7/status", status)
    write("proc/7/task/70/status", status)
    assert tree.switches() == {"main": (25, 7), "workers": (5, 1)}
    write("proc/7/smaps_rollup", "Rss: 40 kB\nPss: 30 kB\n")
    assert tree.pss(3.0, 5.0) == {"main": 30 * 1024}
    write("proc/8/smaps_rollup", "Rss: 40 kB\nPss: 10 kB\n")
    assert tree.pss(3.5, 5.0) == {"main": 30 * 1024, "workers": 10 * 1024}
    a_process(write, 9, 7)
    tree.read(4.0)
    assert tree.pss(4.1, 5.0)["workers"] == 20 * 1024, "a worker not yet read is taken to be like the others"
    tree.close()
