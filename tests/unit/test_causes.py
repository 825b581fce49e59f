"""The benchmark of root causes tells right from wrong, and its cures can be made; what it measures is for
`benchmarks/causes.py`."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from tests.benchmark import BENCHMARKS, load

from bottleneck_doctor.diagnose import rules
from bottleneck_doctor.fixes import catalogue

causes = load("causes")
BY_NAME = {cause.name: cause for cause in causes.CAUSES}
TWICE = {"written": [2.0, 2.02, 1.98], "cured": [1.0, 1.01, 0.99]}


def row(name: str, findings: list[str], fixes: list[tuple[str, str, float]], starts: Any = TWICE) -> Any:
    told = [
        {"id": each, "status": status, "speedup": [factor, 0.95 * factor, 1.05 * factor]}
        for each, status, factor in fixes
    ]
    return causes.Row(BY_NAME[name], {"starts": starts, "examined": {"findings": findings, "fixes": told}})


@pytest.mark.parametrize("name", BY_NAME)
def test_every_cause_has_a_program_and_a_cure_that_can_be_made(name: str) -> None:
    cause = BY_NAME[name]
    ast.parse(cause.cured())
    assert (cause.cured() != cause.file.read_text()) != bool(cause.variables)
    assert cause.findings or cause.fixes or name == "double precision"
    assert {rule.id for rule in rules()}.issuperset(cause.findings)
    assert {fix.id for fix in catalogue()}.issuperset(cause.fixes)


def test_every_program_of_the_folder_is_used() -> None:
    used = {cause.file for cause in causes.CAUSES}
    assert len(BY_NAME) == len(causes.CAUSES)
    assert used.issuperset((BENCHMARKS / "causes").glob("*.py"))


@pytest.mark.parametrize(
    ("findings", "fixes", "named", "first", "measured", "best"),
    [
        ([], [], False, False, False, False),
        (["slow-optimizer", "padding"], [], True, True, False, False),
        (["padding", "slow-optimizer"], [], True, False, False, False),
        ([], [("fused-optimizer", "faster", 2.0)], True, False, True, True),
        ([], [("fused-optimizer", "cannot_tell", 2.0)], False, False, False, False),
        ([], [("fused-optimizer", "faster", 1.5)], True, False, False, True),
        ([], [("fused-optimizer", "faster", 2.0), ("amp-bf16", "faster", 2.05)], True, False, True, False),
        ([], [("fused-optimizer", "faster", 2.0), ("amp-bf16", "faster", 3.0)], True, False, True, True),
    ],
)
def test_what_counts(
    findings: list[str], fixes: list[tuple[str, str, float]], named: bool, first: bool, measured: bool, best: bool
) -> None:
    found = row("an optimizer that loops in Python", findings, fixes)
    assert found.truth.estimate == pytest.approx(2.0, rel=0.01)
    assert (found.named, found.first, found.measured, found.best) == (named, first, measured, best)


def test_a_cure_that_is_no_switch_or_brings_nothing_is_not_asked_of_fixes() -> None:
    by_hand = row("values read one by one", ["synchronising-calls"], [])
    assert (by_hand.named, by_hand.measured, by_hand.best) == (True, None, None)
    useless = row("an optimizer that loops in Python", [], [], dict.fromkeys(("written", "cured"), TWICE["cured"]))
    assert not useless.worth
    assert (useless.measured, useless.best) == (None, None)
    assert causes.sums([by_hand, useless]) == {"named": (1, 1), "measured": (0, 0), "best": (0, 0)}
    text = causes.report_text([by_hand, useless])
    assert "not counted: an optimizer that loops in Python" in text


def test_steps_with_more_samples_count_for_more() -> None:
    found = row("batches of one", ["python-bound"], [])
    assert found.truth.estimate == pytest.approx(64.0, rel=0.01)


def test_without_starts_there_is_no_truth() -> None:
    found = row("double precision", [], [], {"written": [0.0], "cured": []})
    assert found.truth is None
    assert not found.worth
    assert "double precision" in causes.report_text([found])
