"""Garbage collection between epochs: how long it takes, and which line asks for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.runtime.knobs import cleanup_calls
from bottleneck_doctor.runtime.loop.collecting import MOST_CALLERS, Collecting
from bottleneck_doctor.runtime.loop.pauses import EpochPauses
from bottleneck_doctor.runtime.loop.steps import Steps

HERE = str(Path(__file__))


@pytest.fixture(autouse=True)
def _asked() -> Iterator[None]:
    """`gc.collect` as a script of the user's gets it."""
    original = gc.collect
    gc.collect = cleanup_calls._asking(Steps(), "gc.collect", original, lambda: True, 0)
    yield
    gc.collect = original


def test_a_call_is_told_with_its_line() -> None:
    watched = Collecting()
    watched.begin()
    gc.collect()
    watched.end(counts=True)
    ((file, line),) = watched.seconds
    assert (file, line > 0) == (HERE, True)
    assert 0 < watched.seconds[file, line] < 60


def test_what_stands_in_the_place_of_a_stand_in_is_no_caller() -> None:
    gc.collect = cleanup_calls._asking(Steps(), "gc.collect", gc.collect, lambda: True, 0)
    watched = Collecting()
    watched.begin()
    gc.collect()
    watched.end(counts=True)
    ((file, _),) = watched.seconds
    assert file == HERE


def test_what_starts_by_itself_has_no_line() -> None:
    watched = Collecting()
    before = gc.get_threshold()
    gc.set_threshold(10)
    try:
        watched.begin()
        kept: list[Any] = [[[]] for _ in range(1000)]
        watched.end(counts=True)
    finally:
        gc.set_threshold(*before)
    assert kept
    assert set(watched.seconds) == {("", 0)}


def test_nothing_is_watched_and_nothing_kept_beyond_a_pause() -> None:
    watched, callbacks = Collecting(), list(gc.callbacks)
    watched.begin()
    watched.begin()
    assert len(gc.callbacks) == len(callbacks) + 1
    gc.collect()
    watched.end(counts=False)
    gc.collect()
    assert watched.seconds == {}
    assert gc.callbacks == callbacks


def test_many_lines_are_told_as_one() -> None:
    watched = Collecting()
    code = "\n".join(["gc.collect(0)"] * (2 * MOST_CALLERS))
    watched.begin()
    exec(compile(code, "many.py", "exec"), {"gc": gc})
    watched.end(counts=True)
    assert len(watched.seconds) == MOST_CALLERS + 1


def test_pauses_tell_it() -> None:
    pauses = EpochPauses()
    for counts in (True, False):
        pauses.began(1.0, 1.1, counts)
        gc.collect()
        pauses.ended(2.0, 2.1, False, 0.0)
    (told,) = pauses.totals()["collecting"]
    assert (told["file"], pauses.seen) == (HERE, 1)
    assert told["seconds"] > 0
