"""What `benchmarks/together.py` makes of what it measured."""

from __future__ import annotations

from typing import Any

import pytest
from tests.benchmark import load


@pytest.fixture(scope="module")
def together() -> Any:
    return load("together")


def fix(name: str, low: float, high: float, sessions: int = 3, status: str = "faster") -> dict[str, Any]:
    speedup = {"estimate": (low * high) ** 0.5, "low": low, "high": high, "sessions": sessions}
    return {"id": name, "status": status, "setting": {name: True}, "speedup": speedup}


def examined(wall: float, *fixes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"wall": wall, "failure": "", "sentence": "", "fixes": list(fixes), "sessions": [], "steps": [], **more}


@pytest.fixture
def record() -> dict[str, Any]:
    both = fix("workers", 1.25, 1.8), fix("amp-bf16", 1.0, 1.44)
    left: dict[str, Any] = {"id": "compile", "status": "cannot_tell", "setting": {}, "speedup": None}
    never = {**left, "id": "pinned-memory", "status": "not_applicable"}
    steps = [["baseline", 1.0], ["baseline", 1.1], ["workers=2", 0.7], ["workers=2", 0.77]]
    return {
        "together": examined(100.0, *both, left, never),
        "alone": {"workers": examined(90.0, fix("workers", 1.3, 1.7)), "amp-bf16": examined(150.0)},
        "afresh": examined(180.0, sessions=[[2.0, 20.0]] * 9, steps=steps),
    }


def test_what_is_measured_together_is_held_against_each_alone_and_starts_afresh(
    together: Any, record: dict[str, Any]
) -> None:
    cost = together.costs(record)
    assert (cost.applicable, cost.fixes, cost.together, cost.alone) == (3, 2, 100.0, 240.0)
    assert cost.ratio(cost.alone) == pytest.approx(100 / 240)
    assert cost.a_start == 20.0
    # By hand: processes differ by log(1.1) / sqrt(2) = 0.0674, and 0.1823 are wanted: two a side give 0.29, three 0.15.
    assert cost.width == pytest.approx(0.1823, abs=1e-4)
    assert cost.repetitions == 3
    assert cost.afresh == 3 * 3 * 20.0
    said = together.missed({"it": record})
    assert said == [
        "it: 3 fixes apply; 12 are asked for",
        "it: 0.56 of what it takes afresh; the goal is 0.25",
    ]
    assert "240" in together.report_text({"it": record})


def test_a_part_that_is_still_to_be_measured_is_no_figure(together: Any, record: dict[str, Any]) -> None:
    del record["alone"]["workers"]
    del record["afresh"]
    cost = together.costs(record)
    assert cost.alone is None
    assert cost.afresh is None
    assert together.missed({"it": record}) == ["it: 3 fixes apply; 12 are asked for"]
    assert together.costs({"together": examined(60.0)}) is None
    assert together.costs({}) is None
