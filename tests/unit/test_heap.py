"""What glibc's heap keeps, in a process of its own, since any switching of it stays for good."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import Any

import pytest

from bottleneck_doctor.runtime.process import heap

pytestmark = pytest.mark.skipif(bool(heap.obstacle()), reason=heap.obstacle())

MEASURED = """
import json, resource, sys
from bottleneck_doctor.runtime.process import heap

def pages(size, times=8):
    'Pages that a block asks for, once it was asked for a few times.'
    for _ in range(3):
        b"x" * size
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        b"x" * size
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun) / times

MEGABYTE = 1 << 20
PATCH
learnt = pages(6 * MEGABYTE)
told = {"learnt": learnt, "large": pages(40 * MEGABYTE)}
mine = heap.of_this_process()
for turn in ("first", "second"):
    mine.keep()
    told[turn + " kept"] = [mine.keeps(), pages(40 * MEGABYTE)]
    still = [b"y" * 1000 for _ in range(1000)]
    mine.give_back()
    told[turn + " back"] = [mine.keeps(), pages(40 * MEGABYTE)]
told["smaller"] = pages(5 * MEGABYTE)
told["larger"] = pages(9 * MEGABYTE)
print(json.dumps(told))
"""
PAGES = 40 * 256
"""Of the large block."""


def measured(patch: str = "") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED.replace("PATCH", patch)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def alike(pages: float) -> bool:
    return abs(pages - PAGES) < 0.1 * PAGES


def test_large_blocks_are_kept_and_given_back() -> None:
    told = measured()
    assert told["learnt"] < 10, "glibc has learnt to keep blocks of this size"
    assert alike(told["large"])
    for turn in ("first", "second"):
        keeps, kept = told[f"{turn} kept"]
        assert (keeps, kept < 0.3 * PAGES) == (True, True)
        keeps, back = told[f"{turn} back"]
        assert (keeps, alike(back)) == (False, True)


def test_what_was_learnt_is_known_behind_it_and_learning_goes_on() -> None:
    told = measured()
    assert told["smaller"] < 10
    assert told["larger"] < 10, "as in a process that was never switched"


def test_where_glibc_keeps_its_parameters_in_an_unknown_place_it_stops_learning() -> None:
    told = measured("heap._written_by = lambda function: []")
    assert told["second kept"][0] is True
    assert alike(told["second back"][1])
    assert told["smaller"] < 10
    assert told["larger"] > 1000


def test_a_glibc_that_keeps_no_such_blocks_is_left_as_it_was() -> None:
    """Before 2.35, it took no size above 32 MiB."""
    patch = """
plain = heap.Heap._set
heap.Heap._set = lambda self, parameter, value: value <= 1 << 25 and plain(self, parameter, value)
def keep(self, plain=heap.Heap.keep):
    try:
        plain(self)
    except heap.Refused as refused:
        assert "too old" in str(refused)
    else:
        raise AssertionError
heap.Heap.keep = keep
"""
    told = measured(patch)
    assert told["second kept"][0] is False
    assert alike(told["second back"][1])
    assert told["smaller"] < 10


def test_a_system_without_glibc_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str | None) -> object:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert heap.obstacle() == "the memory of this process does not come from glibc"
