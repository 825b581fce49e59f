"""The benchmark of the demo says what its goals have come to; what it measures is for `benchmarks/demo.py`."""

from __future__ import annotations

from typing import Any

from tests.benchmark import load

demo = load("demo")


def record(*, claims: bool) -> dict[str, Any]:
    promised = {"estimate": 1.6, "low": 1.5, "high": 1.7} if claims else None
    known, outcome = (120.0, "agrees") if claims else (None, None)
    return {
        "claims": claims,
        "promised": promised,
        "speedup": promised,
        "known": known,
        "outcome": outcome,
        "wall": 300.0,
    }


def test_rows_that_are_short_say_so() -> None:
    text = demo.report_text({"quiet": [record(claims=True), record(claims=False)]})
    assert "2 of 20" in text
    assert "1.60 1.60 1.60" in text
    assert "core" not in text


def test_a_goal_is_missed_once_it_can_not_be_met_any_more() -> None:
    one = [record(claims=False)]
    assert demo.missed({}) == []
    assert demo.missed({"quiet": one}) == []
    assert "0 of 2" in demo.missed({"quiet": 2 * one})[0]
    assert demo.missed({"core": 4 * one}) == []
    assert "the goal is 16" in demo.missed({"core": 4 * one, "memory": one})[0]
