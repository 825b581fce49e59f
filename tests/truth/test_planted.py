"""Planted bottlenecks, in short: a program whose one cause is known is examined, and the report has to name it.

The long form, with every program, is `benchmarks/planted.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmark import load

planted = load("planted")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["logging_between_steps"])
def test_the_report_names_the_cause_and_its_line(name: str, tmp_path: Path) -> None:
    program = next(program for program in planted.SUITE if program.name == name)
    row = planted.judged(program, planted.examine(program, "45s", tmp_path))
    assert not row.failure
    assert row.right, (row.first, row.sentence, row.not_judged)
    assert row.line, row.named
    assert not row.contradictions
