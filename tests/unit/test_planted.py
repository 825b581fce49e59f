"""The suite of planted bottlenecks is whole, and its runner tells right from wrong.

That the programs run, and what the doctor says of them, is for `benchmarks/planted.py` and `tests/truth`.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark import BENCHMARKS, load

from bottleneck_doctor.diagnose import rules
from bottleneck_doctor.fixes import catalogue

planted = load("planted")
truth = sys.modules[planted.Planted.__module__]
SUITE = {program.name: program for program in planted.SUITE}
KNOWN = {rule.id for rule in rules()}
"""Ids that the truth may name."""


# -- the programs ----------------------------------------------------------------------------------------------------


def test_there_is_a_program_for_every_entry_and_an_entry_for_every_program() -> None:
    assert {path.stem for path in (BENCHMARKS / "planted").glob("*.py")} == set(SUITE)
    assert len(planted.SUITE) == len(SUITE) >= 60


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
    assert set(program.expected) <= KNOWN
    assert program.untrue <= KNOWN
    assert not set(program.expected) & program.untrue, "what is so can't be not so"
    assert set(program.fix or ()) <= {fix.id for fix in catalogue()}
    assert bool(program.marked()) == program.place, "a line is marked where one is the cause, and nowhere else"
    # A call within a longer expression counts as well: an element of a chain has a line of its own.
    tree = ast.parse(program.file.read_text())
    running = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Call)}
    assert program.marked() <= running, "a marked line runs"


def test_most_causes_that_a_cpu_can_have_are_planted() -> None:
    planted_ids = {each for program in planted.SUITE for each in program.expected}
    assert len(planted_ids) >= 20


def test_findings_of_a_cpu_are_asked_from_both_sides_over_all_programs() -> None:
    """Each that some program has must be false of another, where a look-alike can be had."""
    so = {each for program in planted.SUITE for each in program.expected}
    not_so = {each for program in planted.SUITE for each in program.never}
    # What looks like these costs the same, so that it is the same: they are asked on made-up evidence only.
    alike = {"slow-hand-over", "oversubscribed-threads"}
    assert so - not_so <= alike


def test_a_program_that_has_nothing_but_a_look_is_compute_bound() -> None:
    computing = [program for program in planted.SUITE if program.expected == ("compute-bound",)]
    assert len(computing) >= 12
    assert all(set(truth.WAITS) <= program.untrue for program in computing)


def test_contradictions_are_of_findings_that_exist_and_never_of_two_right_ones() -> None:
    known = {rule.id for rule in rules()}
    for pair in planted.CONTRADICTIONS:
        assert len(pair) == 2
        assert pair <= known
        for program in planted.SUITE:
            assert not pair <= set(program.expected), program.name


# -- the runner ------------------------------------------------------------------------------------------------------


def finding(id: str, file: str = "", line: int = 0, weight: float = 0.5) -> dict[str, Any]:
    site = {"file": file, "line": line} if file else None
    return {"id": id, "weight": weight, "sentence": f"It is {id}.", "site": site}


def record(*findings: dict[str, Any], **other: Any) -> dict[str, Any]:
    found = {"findings": list(findings), "not_judged": [], "fixes": [], "failure": "", "wall": 100.0}
    return {**found, **other}


COLLATE = SUITE["slow_collate"]
SLOW = min(COLLATE.marked())


def test_the_right_finding_first_with_a_marked_line_is_right() -> None:
    row = planted.judged(COLLATE, record(finding("slow-collate", str(COLLATE.file), SLOW), finding("step-jitter")))
    assert (row.right, row.line, row.contradictions) == (True, True, ())
    assert planted.missed([row]) == []
    assert planted.sums([row]).startswith(
        "right finding first in 1 of 1; right line in 1 of 1; contradictions 0; falsehoods 0"
    )


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
    assert row.falsehoods == ()
    assert planted.missed([row]) == ["the right finding first in 97%"]
    assert "It is slow-fetch." in planted.report_text([row], long=False)


def test_ninety_seven_of_a_hundred_are_enough_and_ninety_six_are_not() -> None:
    program = SUITE["conv_compute"]
    right, wrong = planted.judged(program, record(finding("compute-bound"))), planted.judged(program, record())
    assert planted.missed([right] * 97 + [wrong] * 3) == []
    assert planted.missed([right] * 96 + [wrong] * 4) == ["the right finding first in 97%"]


def test_what_is_not_so_counts_wherever_it_stands() -> None:
    program = SUITE["sleep_in_getitem"]
    line = min(program.marked())
    row = planted.judged(program, record(finding("slow-fetch", str(program.file), line), finding("cold-cache")))
    assert (row.right, row.line, row.falsehoods) == (True, True, ("cold-cache",))
    assert planted.missed([row]) == ["no falsehood"]
    told = planted.report_text([row], long=False)
    assert "sleep_in_getitem: finds cold-cache, which is not so" in told
    assert "falsehoods 1" in told


def test_a_device_is_found_in_no_program() -> None:
    slight = record(finding("compute-bound"), finding("launch-bound", weight=0.06))
    assert not planted.judged(SUITE["conv_compute"], slight).contradictions, "6 % beside 90 %"
    row = planted.judged(SUITE["conv_compute"], record(finding("compute-bound"), finding("launch-bound")))
    assert row.falsehoods == ("launch-bound",)


ROWS: tuple[tuple[str, list[str]], ...] = (
    ("slow_collate", ["slow-collate"]),
    ("pad_in_collate", ["slow-fetch", "slow-collate"]),
    ("slow_storage", ["workers-io-bound"]),
    ("sleep_in_getitem", ["workers-io-bound", "cold-cache"]),
    ("conv_compute", []),
)


def rows() -> list[Any]:
    return [planted.judged(SUITE[name], record(*map(finding, ids))) for name, ids in ROWS]


def test_the_confusion_matrix_tells_right_from_wrong() -> None:
    lines = planted.confusion_text(rows()).splitlines()
    assert lines[:8] == [
        "| planted | programs | 1 | 2 | 3 | 5 |",
        "|---|--:|--:|--:|--:|--:|",
        "| 1 slow-collate | 2 | 1 |  | **1** |  |",
        "| 2 workers-io-bound | 1 |  | 1 |  |  |",
        "| 3 slow-fetch | 1 |  | 1 |  |  |",
        "| 4 compute-bound | 1 |  |  |  | **1** |",
        "| 5 nothing |  |  |  |  |  |",
        "",
    ]
    cells = {line.count("|") for line in lines[:7]}
    assert cells == {7}, "every row has every column"
    assert lines[-1] == "Falsehoods: pad_in_collate: slow-fetch; sleep_in_getitem: cold-cache."


def test_every_rule_is_counted_from_both_sides() -> None:
    made = {each.id: each for each in planted.sides(rows())}
    assert made["slow-collate"] == planted.Sides(id="slow-collate", so=2, found=2, missed=0, not_so=2, false=0)
    assert made["slow-fetch"] == planted.Sides(id="slow-fetch", so=1, found=0, missed=0, not_so=2, false=1)
    assert made["cold-cache"] == planted.Sides(id="cold-cache", so=0, found=0, missed=0, not_so=5, false=1)
    assert made["compute-bound"].missed == 1
    assert "| cold-cache |  |  |  | 5 | **1** |" in planted.confusion_text(rows()).splitlines()


def test_contradictory_findings_are_counted() -> None:
    both = record(finding("workers-io-bound"), finding("slow-fetch"), finding("workers-cpu-bound"))
    row = planted.judged(SUITE["slow_storage"], both)
    assert row.contradictions == ("workers-io-bound and workers-cpu-bound",)
    assert planted.missed([replace(row, line=True)]) == ["no contradiction", "no falsehood"]
    unjudged = record(finding("compute-bound"), not_judged=[{"id": "compute-bound", "reason": "no phases"}])
    assert planted.judged(SUITE["conv_compute"], unjudged).contradictions == (
        "compute-bound and that it was not judged",
    )


def test_a_failed_examination_is_wrong_and_says_why() -> None:
    row = planted.judged(COLLATE, record(failure="exit code 5. No training loop was found."))
    assert (row.right, row.line) == (False, False)
    assert "No training loop was found." in planted.report_text([row], long=False)


def test_the_fix_that_is_ranked_first_is_compared_where_one_is_known() -> None:
    program = SUITE["workers_for_tensors"]
    fixes = [
        {"id": "amp-bf16", "status": "slower", "low": 0.4},
        {"id": "merged-groups", "status": "faster", "low": 1.1},
        {"id": "no-workers", "status": "faster", "low": 1.4},
    ]
    assert planted.judged(program, record(fixes=fixes)).fix_right is True
    assert planted.judged(program, record(fixes=fixes[:2])).fix_right is False
    assert planted.judged(replace(program, fix=()), record(fixes=fixes[:1])).fix_right is True
    assert planted.judged(replace(program, fix=None), record(fixes=fixes)).fix_right is None


def test_a_changed_program_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "PROGRAMS", tmp_path)
    program = planted.Planted(name="one", expected=("slow-fetch",))
    program.file.write_text("pass\n")
    before = program.fingerprint()
    assert program.fingerprint() == before
    assert replace(program, arguments=("--epochs", "2")).fingerprint() != before
    program.file.write_text("pass  # the slow line\n")
    assert program.fingerprint() != before
    assert program.marked() == {1}


# -- several examinations ----------------------------------------------------------------------------------------------


def run_of(*names: str, **options: Any) -> tuple[list[Any], argparse.Namespace]:
    given: dict[str, Any] = {"reports": None, "again": False, "budget": "", "jobs": 1, **options}
    return [SUITE[name] for name in names], argparse.Namespace(**given)


def test_examinations_beside_one_another_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=20)
    folders = []

    def examine(program: Any, budget: str, scratch: Path, reports: Path | None) -> dict[str, Any]:
        folders.append(scratch)
        assert not list(scratch.iterdir())
        both.wait()
        return record(program=program.fingerprint(), wall=1.0)

    monkeypatch.setattr(planted, "examine", examine)
    programs, options = run_of("slow_collate", "conv_compute", jobs=2)
    records: dict[str, Any] = {}
    kept = []
    planted._run(programs, records, options, lambda: kept.append(len(records)))
    assert kept == [1, 2], "kept as they come"
    assert len(set(folders)) == 2
    assert not [folder for folder in folders if folder.exists()]
    assert (
        planted.beside_text(list(records.values())) == "examined: 2 with 2 beside one another; revisions: 2 at unknown"
    )
    # Nothing is left to do, so nothing is examined.
    planted._run(programs, records, options, lambda: kept.append(0))
    assert kept == [1, 2]


def test_what_ran_alone_and_what_did_not_is_told() -> None:
    told = planted.beside_text([record(), record(jobs=1), {**record(jobs=2), "revision": "abc1234"}])
    assert told == "examined: 2 alone, 1 with 2 beside one another; revisions: 2 at unknown, 1 at abc1234"


def test_a_kept_examination_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    program = planted.SUITE[0]
    site = {"file": str(program.file), "line": 3}
    kept = planted.without_places(
        {"findings": [{"site": site, "sentence": f"{tmp_path}/data is slow", "weight": 0.5}]},
        [program.file.parent, tmp_path],
    )
    told = {"site": {"file": program.file.name, "line": 3}, "sentence": "data is slow", "weight": 0.5}
    assert kept == {"findings": [told]}


def test_an_interrupted_run_keeps_what_is_done_and_ends_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examinations that are under way are ended: waiting for them would take minutes."""
    ended: list[float] = []

    def examine(program: Any, budget: str, scratch: Path, reports: Path | None) -> dict[str, Any]:
        if program.name == "conv_compute":
            begun = time.monotonic()
            subprocess.run(["sleep", "60"], check=False)
            ended.append(time.monotonic() - begun)
        return record(program=program.fingerprint())

    def keep() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planted, "examine", examine)
    programs, options = run_of("conv_compute", "slow_collate", "slow_storage", jobs=2)
    records: dict[str, Any] = {}
    with pytest.raises(KeyboardInterrupt):
        planted._run(programs, records, options, keep)
    assert "conv_compute" not in records
    assert "slow_collate" in records
    assert ended
    assert ended[0] < 30


def test_without_a_budget_the_doctor_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def examination(words: list[str], cwd: Path, limit: float) -> tuple[int, str, float]:
        seen.append(words)
        return 5, "no loop", limit

    monkeypatch.setattr(planted, "examination", examination)
    assert planted.examine(COLLATE, "", tmp_path)["wall"] == planted.DEFAULT_LIMIT
    assert planted.examine(COLLATE, "45s", tmp_path)["wall"] == 45 + planted.GRACE
    assert "--budget" not in seen[0]
    assert seen[1][seen[1].index("--budget") + 1] == "45s"


def test_one_program_of_each_cause_is_the_first_of_its_kind() -> None:
    chosen = planted.one_each(planted.SUITE)
    causes = [program.expected[0] for program in planted.SUITE]
    assert [program.expected[0] for program in chosen] == list(dict.fromkeys(causes))
    assert 20 <= len(chosen) < len(planted.SUITE) / 2


def test_a_second_try_is_told_and_forgives_no_falsehood() -> None:
    program = SUITE["conv_compute"]
    right = record(finding("compute-bound"))
    row = planted.judged(program, {**right, "first_try": record(finding("step-jitter"))})
    assert (row.right, row.good, row.first_try) == (True, True, "step-jitter")
    assert planted.missed([row]) == []
    assert "a second try; the first said step-jitter" in planted.report_text([row], long=False)
    false = planted.judged(program, {**right, "first_try": record(finding("slow-fetch"), finding("compute-bound"))})
    assert false.right
    assert planted.missed([false]) == ["no contradiction", "no falsehood"]


def test_what_was_wrong_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [SUITE["conv_compute"], COLLATE]
    records = {programs[0].name: record(finding("step-jitter")), COLLATE.name: record()}
    tried: list[str] = []

    def run(some: list[Any], into: dict[str, Any], options: Any, keep: Any) -> None:
        tried.extend(each.name for each in some)
        if some[0] is COLLATE:
            raise KeyboardInterrupt
        into[some[0].name] = record(finding("compute-bound"))

    monkeypatch.setattr(planted, "_run", run)
    with pytest.raises(KeyboardInterrupt):
        planted._try_again(programs, records, argparse.Namespace(), lambda: None)
    assert tried == [each.name for each in programs]
    assert planted.judged(programs[0], records[programs[0].name]).good
    assert records[COLLATE.name] == record(), "interrupted, the first try is kept"
    planted._try_again(programs[:1], records, argparse.Namespace(), lambda: None)
    assert len(tried) == 2, "once"
