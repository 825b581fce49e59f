"""The log of what a program writes stays short on the disk, and says its first and its last words."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bottleneck_doctor.session import output_log
from bottleneck_doctor.session.output_log import FIRST, LAST, OutputLog, megabytes

LINE = b"%09d\n"
MANY = 2_000_000
"""Lines of ten bytes: 20 MB."""


@pytest.fixture
def long(tmp_path: Path) -> OutputLog:
    path = tmp_path / "output.log"
    path.write_bytes(b"".join(LINE % number for number in range(MANY)))
    return OutputLog(path)


def on_disk(log: OutputLog) -> int:
    return log.path.stat().st_blocks * 512


def test_middle_goes_and_both_ends_stay(long: OutputLog) -> None:
    before = on_disk(long)
    long.trim()
    if on_disk(long) == before:
        pytest.skip("this file system knows no holes")
    assert on_disk(long) <= FIRST + LAST + 8192
    assert long.size() == 10 * MANY
    words = long.words(100, LAST)
    assert words.first == b"".join(LINE % number for number in range(10))
    assert words.last == b"".join(LINE % number for number in range(MANY - LAST // 10 - 1, MANY))[-LAST:]
    assert words.left_out == 10 * MANY - 100 - LAST


def test_who_writes_goes_on_behind_the_hole(long: OutputLog) -> None:
    with open(long.path, "ab") as program:
        long.trim()
        program.write(b"last words\n")
    assert long.words(100, 100).last.endswith(LINE % (MANY - 1) + b"last words\n")


def test_what_is_still_to_be_read_is_not_given_back(long: OutputLog) -> None:
    long.trim(read=0)
    assert long.path.read_bytes() == b"".join(LINE % number for number in range(MANY))


def test_short_one_is_told_whole(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "output.log")
    log.path.write_bytes(b"one\ntwo\n")
    assert log.words(4, 4) == output_log.Words(b"", 0, b"one\ntwo\n")
    assert log.words(4, 3) == output_log.Words(b"one\n", 1, b"wo\n")
    # No half of a line at the beginning.
    assert log.words(2, 4) == output_log.Words(b"", 4, b"two\n")


def shown(log: OutputLog, more: bytes = b"") -> bytes:
    """What `watch` shows of a log to which `more` is added meanwhile."""
    told: list[bytes] = []
    over = threading.Event()
    watching = threading.Thread(target=log.watch, args=(over.is_set, told.append))
    watching.start()
    with open(log.path, "ab") as program:
        program.write(more)
    deadline = time.monotonic() + 20
    end = log.path.read_bytes()[-10:]
    while not b"".join(told).endswith(end) and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    watching.join()
    return b"".join(told)


def test_everything_is_shown_where_that_is_wanted(long: OutputLog) -> None:
    assert shown(long, b"last words") == b"".join(LINE % number for number in range(MANY)) + b"last words"


def test_what_comes_faster_than_it_can_be_shown_is_left_out(long: OutputLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_log, "_MOST_BEHIND", 2 * LAST)
    lines = shown(long).splitlines()
    assert lines[0] == f"[... {megabytes(10 * MANY - LAST)} left out ...]".encode()
    assert all(len(line) == 9 for line in lines[1:])
    assert lines[-1] == b"%09d" % (MANY - 1)
