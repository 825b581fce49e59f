"""The benchmark of answers tells right from wrong; what it measures is for `benchmarks/decisive.py`."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import Any

import psutil
import pytest
from tests.benchmark import BENCHMARKS, load
from tests.process.driver import wait_until

from bottleneck_doctor.fixes import catalogue

decisive = load("decisive")
BY_NAME = {program.name: program for program in decisive.PROGRAMS}


def record(
    *claimed: str, undecided: tuple[str, ...] = (), failure: str = "", sentence: str = decisive.NOTHING[1]
) -> dict[str, Any]:
    return {
        "claimed": list(claimed),
        "claims": bool(claimed),
        "undecided": list(undecided),
        "failure": failure,
        "wall": 100.0,
        "sentence": sentence,
    }


@pytest.mark.parametrize("name", BY_NAME)
def test_every_program_is_there_and_names_known_fixes(name: str) -> None:
    ast.parse((BENCHMARKS / BY_NAME[name].file).read_text())
    assert {fix.id for fix in catalogue()}.issuperset(BY_NAME[name].best)


@pytest.mark.parametrize(
    ("name", "kind", "found", "told"),
    [
        ("many_tensors", "quiet", record("fused-optimizer"), "right"),
        ("many_tensors", "quiet", record("amp-bf16", "fused-optimizer"), "right"),
        ("many_tensors", "quiet", record("amp-bf16"), "other"),
        ("many_tensors", "quiet", record(), "open"),
        ("many_tensors", "quiet", record(undecided=("fused-optimizer",)), "open"),
        ("many_tensors", "quiet", record(failure="exit code 3"), "failed"),
        ("many_tensors", "core", record("threads"), "right"),
        ("many_tensors", "memory", record("threads"), "other"),
        ("large_tensors", "quiet", record("amp-bf16"), "other"),
        ("large_tensors", "quiet", record("amp-bf16", sentence="with `MALLOC_TRIM_THRESHOLD_=1`"), "right"),
        ("item_loop", "quiet", record(), "right"),
        ("item_loop", "quiet", record(undecided=("threads",)), "right"),
        ("item_loop", "quiet", record(sentence="Cannot tell: `x` measured 1.2×"), "open"),
        ("item_loop", "quiet", record("threads"), "wrong"),
        ("item_loop", "core", record("threads"), "right"),
        ("item_loop", "core", record(), "open"),
        ("parsed_lines", "core", record(), "right"),
        ("parsed_lines", "core", record("workers"), "wrong"),
    ],
)
def test_answers(name: str, kind: str, found: dict[str, Any], told: str) -> None:
    assert decisive.answer(BY_NAME[name], kind, found) == told


def test_rows_that_are_short_say_so() -> None:
    records = {"many_tensors quiet": [record("fused-optimizer")], "item_loop memory": [record(), record("threads")]}
    text = decisive.report_text(records, list(BY_NAME.values()))
    assert "1 of 3" in text
    assert "something helps, quiet: right 1, of 1" in text
    assert "nothing helps, memory: right 1, wrong 1, of 2" in text


@pytest.mark.parametrize("kind", ["core", "bursts", "memory"])
def test_a_neighbour_is_gone_afterwards(kind: str) -> None:
    def found() -> list[psutil.Process]:
        return [each for each in psutil.Process().children() if "_neighbour.py" in " ".join(each.cmdline())]

    with decisive.beside(kind):
        # A process that has just begun has no command line for a moment.
        assert wait_until(found)
        (neighbour,) = found()
    assert not neighbour.is_running()


def test_the_table_is_printed_without_measuring() -> None:
    words = [sys.executable, str(BENCHMARKS / "decisive.py"), "--table"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Answers of examinations" in done.stdout
