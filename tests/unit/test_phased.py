"""Which windows of phases are believed where other programs come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_evidence import beside, window
from tests.unit.test_prober import make

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.explain.phased import MOST, PhasedWindows

STEP = 0.1
"""Seconds, as timed windows of `make` take for a step."""


def taken(*loads: float | None, step: float = STEP, timed: int = 3) -> PhasedWindows:
    """Windows of phases beside which others wanted so many CPUs, after timed ones with nobody else there."""
    selection, prober = make()
    selection.measured.windows += [window(seconds=10 * STEP, around=beside(0.05)) for _ in range(timed)]
    made = PhasedWindows(selection.measured, prober)
    for number, load in enumerate(loads):
        made.add(phases(load, step + 0.001 * number), {"number": number})
    return made


def phases(load: float | None, step: float) -> Window:
    around: Any = None if load is None else beside(load)
    return replace(window(seconds=10 * step), mode="phases", around=around)


@pytest.mark.parametrize(
    ("loads", "another", "believed"),
    [
        ((0.1,), False, [0]),
        ((1.5,), True, [0]),  # There is nothing else.
        ((1.5, 0.1), False, [1]),
        ((0.1, 1.5), True, [0]),
        ((1.5, 1.4), True, [0]),
        ((1.5, 1.4, 1.6), False, [0]),  # Whatever disturbs all of them will keep running.
        ((0.1, 0.2), False, [0, 1]),
        ((None,), False, [0]),
    ],
)
def test_a_window_beside_other_programs_is_taken_again(
    loads: tuple[float | None, ...], another: bool, believed: list[int]
) -> None:
    assert len(loads) <= MOST
    made = taken(*loads)
    assert made.wants_another({}) is another
    assert [each["number"] for each in made.details({})] == believed
    assert made.all_disturbed({}) is all(load is not None and load > 1 for load in loads)


def test_steps_that_take_much_longer_than_timed_ones_were_disturbed() -> None:
    assert taken(0.1, step=2 * STEP).wants_another({})
    assert not taken(0.1, step=1.2 * STEP).wants_another({})


def test_before_anything_was_timed_nobody_knows_what_is_usual() -> None:
    assert not taken(1.5, timed=0).wants_another({})


def test_each_setting_has_its_own() -> None:
    made = taken(1.5)
    assert not made.wants_another({"num_workers": 2})
    assert made.all_disturbed({"num_workers": 2})
