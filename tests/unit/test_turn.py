"""Processes that are started at once train one after the other until their loops are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bottleneck_doctor.runtime.wire import turn as module
from bottleneck_doctor.runtime.wire.turn import LONGEST, Turn

pytest.importorskip("fcntl", reason="without file locks there are no turns")


class Clock:
    """A clock that goes on while somebody sleeps; `meanwhile`: what others do, by the time at which they do it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.meanwhile: dict[float, Turn] = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at, turn in list(self.meanwhile.items()):
            if self.now >= at:
                turn.give_back()
                del self.meanwhile[at]

    def turn(self, file: Path | str) -> Turn:
        return Turn(str(file), lambda: self.now, self.sleep)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "turn"
    path.touch()
    return path


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_second_waits_until_the_first_gives_its_turn_back(clock: Clock, file: Path) -> None:
    first, second = clock.turn(file), clock.turn(file)
    assert first.take() == 0.0
    clock.meanwhile[107.0] = first
    assert second.take() == pytest.approx(7.0, abs=0.02)
    third = clock.turn(file)
    clock.meanwhile[109.0] = second
    assert third.take() == pytest.approx(2.0, abs=0.02)


def test_nobody_waits_for_ever(clock: Clock, file: Path) -> None:
    first, second = clock.turn(file), clock.turn(file)
    first.take()
    assert second.take() == pytest.approx(LONGEST, abs=0.02)


def test_a_turn_comes_once(clock: Clock, file: Path) -> None:
    first, second = clock.turn(file), clock.turn(file)
    first.take()
    first.give_back()
    second.take()
    assert first.take() == 0.0, "it had its turn"
    second.give_back()
    second.give_back()


def test_a_process_that_never_trained_needs_no_turn(clock: Clock, file: Path) -> None:
    first, second = clock.turn(file), clock.turn(file)
    first.give_back()
    assert first.take() == 0.0
    assert second.take() == 0.0


@pytest.mark.parametrize("where", ["", "nowhere/turn"])
def test_without_a_file_nobody_waits(clock: Clock, tmp_path: Path, where: str) -> None:
    turn = clock.turn(tmp_path / where if where else "")
    assert turn.take() == 0.0
    turn.give_back()


def test_a_file_system_without_locks_has_no_turns(clock: Clock, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    before = open_files()
    monkeypatch.setattr(module.fcntl, "flock", no_locks)
    turn = clock.turn(file)
    assert turn.take() == 0.0
    turn.give_back()
    assert open_files() == before


def test_nothing_stays_open(clock: Clock, file: Path) -> None:
    before = open_files()
    turn = clock.turn(file)
    turn.take()
    assert open_files() == before + 1
    turn.give_back()
    assert open_files() == before


def test_a_forked_process_leaves_the_turn_to_its_parent(clock: Clock, file: Path) -> None:
    first, second = clock.turn(file), clock.turn(file)
    first.take()
    child = os.fork()
    if not child:
        first.leave()
        os._exit(0)
    os.waitpid(child, 0)
    assert second.take() == pytest.approx(LONGEST, abs=0.02), "the parent still has it"
