"""The suite of planted bottlenecks is whole, and its runner tells right from wrong.

That the programs run, and what the doctor says of them, is for `benchmarks/planted.py` and `tests/truth`.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark import BENCHMARKS, load

from bottleneck_doctor.diagnose import rules
from bottleneck_doctor.fixes import catalogue

planted = load("planted")
SUITE = {program.name: program for program in planted.SUITE}


# -- the programs ----------------------------------------------------------------------------------------------------


def test_there_is_a_program_for_every_entry_and_an_entry_for_every_program() -> None:
    assert {path.stem for path in (BENCHMARKS / "planted").glob("*.py")} == set(SUITE)
    assert len(planted.SUITE) == len(SUITE) >= 24


@pytest.mark.parametrize("name", SUITE)
def test_a_program_is_an_ordinary_training_script(name: str) -> None:
    program = SUITE[name]
    text = program.file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    assert "doctor" not in text.lower()
    imported = {
        node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    imported |= {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported <= sys.stdlib_module_names | {"torch", "torchvision", "numpy", "PIL"}, "it is self-contained"
    options = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {word for word in program.arguments if word.startswith("--")} <= options


@pytest.mark.parametrize("name", SUITE)
def test_a_program_states_its_truth(name: str) -> None:
    program = SUITE[name]
    assert program.expected
    assert set(program.expected) <= {rule.id for rule in rules()}
    assert set(program.fix or ()) <= {fix.id for fix in catalogue()}
    assert bool(program.marked()) == program.place, "a line is marked where one is the cause, and nowhere else"
    running = {node.lineno for node in ast.walk(ast.parse(program.file.read_text())) if isinstance(node, ast.stmt)}
    assert program.marked() <= running, "a marked line runs"


def test_most_causes_that_a_cpu_can_have_are_planted() -> None:
    planted_ids = {each for program in planted.SUITE for each in program.expected}
    assert len(planted_ids) >= 20


def test_contradictions_are_of_findings_that_exist_and_never_of_two_right_ones() -> None:
    known = {rule.id for rule in rules()}
    for pair in planted.CONTRADICTIONS:
        assert len(pair) == 2
        assert pair <= known
        for program in planted.SUITE:
            assert not pair <= set(program.expected), program.name


# -- the runner ------------------------------------------------------------------------------------------------------


def finding(id: str, file: str = "", line: int = 0) -> dict[str, Any]:
    return {"id": id, "sentence": f"It is {id}.", "site": {"file": file, "line": line} if file else None}


def record(*findings: dict[str, Any], **other: Any) -> dict[str, Any]:
    found = {"findings": list(findings), "not_judged": [], "fixes": [], "failure": "", "wall": 100.0}
    return {**found, **other}


COLLATE = SUITE["slow_collate"]
SLOW = min(COLLATE.marked())


def test_the_right_finding_first_with_a_marked_line_is_right() -> None:
    row = planted.judged(COLLATE, record(finding("slow-collate", str(COLLATE.file), SLOW), finding("step-jitter")))
    assert (row.right, row.line, row.contradictions) == (True, True, ())
    assert planted.missed([row]) == []
    assert planted.sums([row]).startswith("right finding first in 1 of 1; right line in 1 of 1; contradictions 0")


@pytest.mark.parametrize(
    "site", [(str(COLLATE.file), SLOW + 20), ("elsewhere.py", SLOW), ("", 0)], ids=["line", "file", "none"]
)
def test_another_line_is_wrong(site: tuple[str, int]) -> None:
    row = planted.judged(COLLATE, record(finding("slow-collate", *site)))
    assert (row.right, row.line) == (True, False)
    assert planted.missed([row]) == ["every line right"]
    assert f"instead of line {SLOW}" in planted.report_text([row], long=False)


def test_the_right_finding_second_is_wrong_though_its_line_is_right() -> None:
    row = planted.judged(COLLATE, record(finding("slow-fetch"), finding("slow-collate", str(COLLATE.file), SLOW)))
    assert (row.right, row.line) == (False, True)
    assert planted.missed([row]) == ["the right finding first in 95%"]
    assert "It is slow-fetch." in planted.report_text([row], long=False)


def test_nineteen_of_twenty_are_enough_and_eighteen_are_not() -> None:
    program = SUITE["conv_compute"]
    right, wrong = planted.judged(program, record(finding("compute-bound"))), planted.judged(program, record())
    assert planted.missed([right] * 19 + [wrong]) == []
    assert planted.missed([right] * 18 + [wrong] * 2) == ["the right finding first in 95%"]


def test_contradictory_findings_are_counted() -> None:
    both = record(finding("workers-io-bound"), finding("slow-fetch"), finding("workers-cpu-bound"))
    row = planted.judged(SUITE["slow_storage"], both)
    assert row.contradictions == ("workers-io-bound and workers-cpu-bound",)
    assert planted.missed([replace(row, line=True)]) == ["no contradiction"]
    unjudged = record(finding("compute-bound"), not_judged=[{"id": "compute-bound", "reason": "no phases"}])
    assert planted.judged(SUITE["conv_compute"], unjudged).contradictions == (
        "compute-bound and that it was not judged",
    )


def test_a_failed_examination_is_wrong_and_says_why() -> None:
    row = planted.judged(COLLATE, record(failure="exit code 5. No training loop was found."))
    assert (row.right, row.line) == (False, False)
    assert "No training loop was found." in planted.report_text([row], long=False)


def test_the_first_faster_fix_is_compared_where_one_is_known() -> None:
    program = SUITE["workers_for_tensors"]
    fixes = [{"id": "amp-bf16", "status": "slower"}, {"id": "no-workers", "status": "faster"}]
    assert planted.judged(program, record(fixes=fixes)).fix_right is True
    assert planted.judged(program, record(fixes=fixes[:1])).fix_right is False
    assert planted.judged(replace(program, fix=()), record(fixes=fixes[:1])).fix_right is True
    assert planted.judged(replace(program, fix=None), record(fixes=fixes)).fix_right is None


def test_a_changed_program_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "PROGRAMS", tmp_path)
    program = planted.Planted(name="one", expected=("slow-fetch",))
    program.file.write_text("pass\n")
    before = program.fingerprint()
    assert program.fingerprint() == before
    assert replace(program, arguments=("--epochs", "2")).fingerprint() != before
    program.file.write_text("pass  # the slow line\n")
    assert program.fingerprint() != before
    assert program.marked() == {1}
