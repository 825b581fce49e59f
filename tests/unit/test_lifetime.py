"""Windows for the lives of short-lived processes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.diagnosable import window

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.examine import lifetime
from bottleneck_doctor.examine.lifetime import Lifetime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.schedule import LoopShape, Plan, probe

PLAN = Plan(4, 45.0, 2.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lived(*seconds: float) -> tuple[Lifetime, Clock]:
    clock = Clock()
    life = Lifetime(clock)
    for each in seconds:
        life.begins()
        clock.now += each
        life.ended()
        clock.now += 5.0
    return life, clock


def test_until_a_process_has_ended_nothing_is_limited() -> None:
    life, clock = lived()
    clock.now += 1000.0
    assert life.left(0.1) == math.inf
    assert life.planned(PLAN, 5, 0.002, 3.0, 100.0, 8) == PLAN


def test_the_shortest_life_counts() -> None:
    life, clock = lived(12.0, 9.0, 10.0)
    assert life.seconds == 9.0
    life.begins()
    clock.now += 4.0
    assert life.left(0.1) == pytest.approx(0.95 * 9.0 - 4.0)


def test_more_processes_are_planned_once_there_is_more_time() -> None:
    """Lives of 15 s hold one of 14 settings each, so it takes many to try them all."""
    life, _ = lived(15.5)
    first = life.planned(replace(PLAN, sessions=4, session_seconds=60.0, window_seconds=1.6), 14, 0.5, 9.5, 213.0, 8)
    assert first.sessions == 8
    later = life.planned(first, 9, 0.5, 9.5, 383.0, 8)
    assert (later.sessions, later.window_seconds) == (15, first.window_seconds)
    assert life.planned(later, 9, 0.5, 9.5, 50.0, 8) == later


def test_a_life_has_no_more_steps_than_a_process_made() -> None:
    """The first batch of each epoch is waited for, which is no step."""
    life, clock = lived()
    assert life.steps(0.5) == math.inf
    clock.now += 10.0
    life.ended(steps=15)
    assert life.steps(0.5) == pytest.approx(0.95 * 15)
    assert life.steps(2.0) == pytest.approx(0.95 * 5)
    life.begins(lambda: 11)
    assert life.left(0.5) == pytest.approx(4 * 0.5)
    assert life.holds(4)
    assert not life.holds(5)


def test_what_it_stood_still_at_its_end_is_no_part_of_a_life() -> None:
    life, clock = lived()
    life.begins()
    clock.now += 30.0
    life.ended(still=11.0)
    assert (life.seconds, life.lives) == (19.0, 1)


@given(seconds=st.floats(0.5, 500.0), settings=st.integers(1, 20))
def test_all_settings_fit_into_a_life_unless_it_is_far_too_short(seconds: float, settings: int) -> None:
    life, _ = lived(seconds)
    made = life.planned(PLAN, settings, 0.002, 3.0, 150.0, 8)
    assert lifetime.LEAST_WINDOW_SECONDS <= made.window_seconds <= PLAN.window_seconds
    windows = settings + math.ceil(settings / 3) + 1
    if made.window_seconds > lifetime.LEAST_WINDOW_SECONDS:
        assert (windows - 1) * made.window_seconds * lifetime.WITH_LEAD_IN <= lifetime.USED * seconds + 1e-9
    # A process that holds all settings in a claim's processes; one that holds few leaves them to others.
    assert PLAN.sessions <= made.sessions <= max(8, 3 * settings)
    assert made.session_seconds <= PLAN.session_seconds


def test_a_life_of_a_few_steps_holds_one_comparison() -> None:
    """Thirteen steps of 0.28 s: two timed ones in each of three windows, after two that lead in."""
    life, _ = lived(13 * 0.28)
    assert life.steps_compared(0.28) == 2
    assert life.planned(PLAN, 4, 0.28, 6.0, 170.0, 8).sessions == 12
    longer, _ = lived(100 * 0.28)
    assert longer.steps_compared(0.28) == 29


def test_windows_get_fewer_steps_where_a_life_then_holds_more_settings() -> None:
    """A start of some seconds costs more than what the seventh and the eighth step of a window tell."""
    life, _ = lived(40 * 0.5)
    assert life.steps_compared(0.5, settings=1) == 10
    assert life.steps_compared(0.5, settings=2) == life.steps_compared(0.5, settings=12) == 5
    longer, _ = lived(100 * 0.5)
    assert [longer.steps_compared(0.5, settings=each) for each in (1, 2, 3, 12)] == [29, 17, 11, 4]
    shorter, _ = lived(20 * 0.5)
    assert shorter.steps_compared(0.5, settings=12) == 4


def test_what_a_life_does_not_hold_takes_several() -> None:
    life, _ = lived()
    assert life.starts(1e6) == 1
    short, _ = lived(20.0)
    assert [short.starts(each) for each in (1.0, 19.0, 19.1, 38.0, 60.0)] == [1, 1, 2, 2, 4]


def test_a_step_of_a_life_holds_its_part_of_what_lies_between_epochs() -> None:
    """Three epochs of five steps take 1.5 s of training and, with three evaluations and a start, 4.8 s of a life."""
    life, _ = lived(12.0)
    epochs = window(0, steps=15, seconds=1.5, lead_in_steps=0, whole_epochs=3, started=20.0, ended=24.8)
    within = window(1, steps=15, seconds=1.5, started=30.0, ended=39.0)
    other = window(2, steps=15, setting={"num_workers": 0}, whole_epochs=3, started=40.0, ended=49.0)
    assert life.step_seconds([epochs, within, other], 0.1) == pytest.approx(0.32)
    assert life.step_seconds([within, other], 0.1) == 0.1
    assert life.steps_compared(0.32) == 9
    assert life.steps_compared(0.1) == 35


def test_there_are_as_many_processes_as_the_time_holds() -> None:
    life, _ = lived(9.0)
    assert life.planned(PLAN, 5, 0.002, 3.0, 150.0, 8).sessions == 8
    assert life.planned(PLAN, 5, 0.002, 3.0, 74.0, 8).sessions == 6
    assert life.planned(PLAN, 5, 0.002, 3.0, 30.0, 8).sessions == 4


def test_windows_of_short_epochs_are_as_many_as_a_life_holds() -> None:
    """Pairs of processes, too, live no longer than the script does."""
    shape = LoopShape(period=1, epoch_batches=5, num_workers=8, prefetch_factor=2, served=True)
    costs = Costs(shape, 0.15, 0.7, brief=True)
    baseline = probe(BASELINE, {})
    assert costs.size(baseline, 0.7).epochs == 3
    costs.most_steps = 9
    for each in (costs, costs.with_windows_of(0.5)):
        assert each.size(baseline, 0.7).epochs == 1
    costs.most_steps = 3
    assert costs.size(baseline, 0.7).epochs == 1
