"""The benchmark of confirmed promises tells right from wrong; what it measures is for `benchmarks/confirmed.py`."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
from tests.benchmark import BENCHMARKS, load

from bottleneck_doctor.fixes import catalogue

confirmed = load("confirmed")
PROGRAMS = {program.name: program for program in confirmed.PROGRAMS}


def speedup(estimate: float, half: float = 0.05) -> dict[str, float]:
    return {"estimate": estimate, "low": estimate * math.exp(-half), "high": estimate * math.exp(half)}


def row(name: str, **record: Any) -> Any:
    known = {"failure": "", "fixes": [{"id": "workers", "status": "faster"}], "confirmation": None, "wall": 1.0}
    return confirmed.Row(PROGRAMS[name], {**known, **record})


def agreed(edited: float = 1.5, **more: Any) -> dict[str, Any]:
    confirmation = {"outcome": "agrees", "promised": speedup(1.5), "speedup": speedup(edited)}
    return {"confirmation": confirmation, "apply": 0, "again": [again("not_applicable", "already on: 2")], **more}


def again(status: str, reason: str = "") -> dict[str, str]:
    return {"id": "workers", "status": status, "reason": reason}


def test_every_program_is_there_once_and_names_known_fixes() -> None:
    assert len(PROGRAMS) == len(confirmed.PROGRAMS)
    known = {fix.id for fix in catalogue()}
    for program in confirmed.PROGRAMS:
        ast.parse((BENCHMARKS / program.folder / program.file).read_text())
        assert known.issuperset(program.only), program.name


def test_a_difference_is_told_in_its_own_standard_errors() -> None:
    found = row("promised/literal", **agreed(1.5 * math.exp(0.1)))
    assert found.z == pytest.approx(0.1 / (0.05 / confirmed.Z95 * math.sqrt(2)))
    assert found.off == pytest.approx(math.expm1(0.1))
    assert found.good


@pytest.mark.parametrize(
    ("name", "record", "good"),
    [
        ("promised/literal", {}, False),
        ("promised/literal", agreed(), True),
        ("promised/literal", agreed(apply=4), True),
        ("promised/literal", agreed(again=[again("faster")]), False),
        ("promised/literal", agreed(again=[again("cannot_tell")]), True),
        ("promised/literal", agreed(again_failure="it broke"), False),
        ("promised/literal", agreed(confirmation={"outcome": "not_faster"}), False),
        ("planted/small_layers", {}, True),
        ("planted/small_layers", agreed(), False),
        ("promised/argparse_option --workers 0", {"confirmation": {"outcome": "missing"}, "apply": 2}, False),
        ("promised/argparse_option --workers 0", agreed(apply=2), True),
        ("promised/argparse_option --workers 0", agreed(), False),
    ],
)
def test_what_is_as_it_should_be(name: str, record: dict[str, Any], good: bool) -> None:
    assert row(name, **record).good == good


def test_the_table_adds_up() -> None:
    shown = [row("promised/literal", **agreed(1.51)), row("workloads/cleanup", **agreed(1.9)), row("promised/bound")]
    *_, shares, good = confirmed.markdown(shown)
    assert shares.startswith("1 of 2 inside 50%, 1 of 2 inside 80%, 1 of 2 inside 95%; off by ")
    assert good == "2 of 3 as they should be."


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (again("not_applicable", "already on: the loader has two workers"), "already on"),
        (again("no_difference"), "no difference"),
        (again("faster"), "NO: workers"),
    ],
)
def test_what_is_found_afterwards_is_said(found: dict[str, str], said: str) -> None:
    assert row("promised/literal", **agreed(again=[found])).on == said
