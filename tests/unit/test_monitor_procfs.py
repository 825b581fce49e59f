"""Texts of /proc and of control groups, as kernels write them, and as they break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.monitor import procfs

TAIL = (
    b" S 4242 4243 4244 0 -1 4194304 103 7 11 13 271 99 31 17 20 0 5 0 1327492 3133440 390 18446744073709551615 "
    b"94858237374464 94858237394345 140731738476720 0 0 0 0 0 0 0 0 0 17 0 0 0 23 0 0 94858237410352 94858237411968\n"
)
STATUS = b"""Name:\tpython
Groups:\tvoluntary_ctxt_switches:
Threads:\t1
voluntary_ctxt_switches:\t151
nonvoluntary_ctxt_switches:\t545
"""
IO = b"""rchar: 6976
wchar: 12
syscr: 10
syscw: 1
read_bytes: 4096
write_bytes: 8192
cancelled_write_bytes: 0
"""
PRESSURE = b"""some avg10=0.44 avg60=0.30 avg300=0.42 total=1612214382
full avg10=0.00 avg60=0.00 avg300=0.00 total=7
"""
DISKS = b"""   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
 254       0 vda 319845 19680 200 1159086 91581 252113 100 346237 0 384836 1528637 183078 102 64892280 21187 12230 2126
 254       1 vda1 319845 19680 200 1159086 91581 252113 100 346237 0 384836 1528637 183078 102 64892280 21187 12230 21
"""


def test_stat() -> None:
    found = procfs.stat(b"4245 (pt_data_worker)" + TAIL)
    assert found == procfs.Stat(
        name="pt_data_worker",
        state="S",
        parent=4242,
        session=4244,
        minor_faults=103,
        major_faults=11,
        user=271,
        system=99,
        reaped_user=31,
        reaped_system=17,
        threads=5,
        rss_pages=390,
        blocked=23,
    )


@pytest.mark.parametrize("name", ["a b", "(sd-pam)", "x) S 1 2 (3", ") (", ""])
def test_stat_of_a_name_with_spaces_and_parentheses(name: str) -> None:
    found = procfs.stat(b"4245 (" + name.encode() + b")" + TAIL)
    assert (found.name, found.state, found.parent, found.threads) == (name, "S", 4242, 5)


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_stat_of_any_name(name: bytes) -> None:
    found = procfs.stat(b"1 (" + name + b")" + TAIL)
    assert (found.name, found.user) == (name.decode(errors="replace"), 271)


@given(st.binary(max_size=200))
def test_nothing_but_the_promised_errors(text: bytes) -> None:
    readers = (
        procfs.stat,
        procfs.storage_bytes,
        procfs.switches,
        procfs.table,
        procfs.pairs,
        procfs.cpu_times,
        procfs.last_pid,
        procfs.pressure_seconds,
        procfs.group_paths,
        procfs.throttling,
        procfs.limit_bytes,
        lambda text: procfs.disk_bytes(text, ["vda"]),
    )
    for reader in readers:
        try:
            reader(text)
        except procfs.Malformed:
            continue


def test_counters_of_a_process() -> None:
    assert procfs.storage_bytes(IO) == (4096, 8192)
    assert procfs.switches(STATUS) == (151, 545)
    assert procfs.table(b"Rss:   16 kB\nPss:   3 kB\n")[b"Pss"] == 3072


def test_times_of_all_cpus() -> None:
    found = procfs.cpu_times(b"cpu  100 20 30 400 50 6 7 8 90 9\ncpu0 1 2 3 4\n")
    assert found == procfs.CpuTimes(busy=163, stolen=8, total=621)
    old = procfs.cpu_times(b"cpu 100 20 30 400 50\n")
    assert (old.busy, old.stolen, old.total) == (150, 0, 600)


def test_machine() -> None:
    assert procfs.pressure_seconds(PRESSURE) == pytest.approx(1612.214382)
    assert procfs.last_pid(b"0.44 0.30 0.42 3/210 10673\n") == 10673
    assert procfs.disk_bytes(DISKS, ["vda"]) == (200 * 512, 100 * 512)
    names = ["loop0", "ram1", "zram0", "dm-0", "md127", "sr0", "vda", "nvme0n1", "sda", "mmcblk0"]
    assert [name for name in names if procfs.is_disk(name)] == ["vda", "nvme0n1", "sda", "mmcblk0"]


def test_control_groups() -> None:
    first = procfs.group_paths(b"4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/d:e\n")
    assert first == {"memory": "/a/b", "cpu": "/c", "cpuacct": "/c", "": "/d:e"}
    assert procfs.ancestors("/a/b") == ["/a/b", "/a", "/"]
    assert procfs.ancestors("/") == ["/"]
    assert procfs.ancestors("/../../pod") == ["/pod", "/"]
    second = b"usage_usec 9\nuser_usec 5\nnr_periods 40\nnr_throttled 10\nthrottled_usec 77\n"
    assert procfs.throttling(second) == procfs.Throttling(40, 10)
    assert procfs.throttling(b"usage_usec 9\n") == procfs.Throttling(0, 0)
    assert procfs.limit_bytes(b"max\n") is None
    assert procfs.limit_bytes(b"9223372036854771712\n") is None
    assert procfs.limit_bytes(b"2147483648\n") == 1 << 31
