"""How a pair spends its time."""

from __future__ import annotations

import random

import pytest

from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.decide import LEAST_PAIRS


def test_each_side_goes_first_as_often_as_the_other() -> None:
    made = plan.order(10, random.Random(1))
    assert len(made) == 10
    assert sum(first == "base" for first, _ in made) == 5
    assert all({*each} == {"base", "head"} for each in made)
    assert {plan.order(2, random.Random(seed))[0] for seed in range(20)} == {("base", "head"), ("head", "base")}


@pytest.mark.parametrize(
    ("setup", "window", "budget", "expected"),
    [
        (3, 1.2, 300, 2),
        (3, 0.8, 300, 3),
        (20, 1.2, 300, 7),
        (3, 6, 300, 2),
        (200, 60, 300, plan.LEAST_ROUNDS),
        (100, 0.5, float(10**9), plan.MOST_ROUNDS),
    ],
)
def test_slow_starts_are_worth_more_windows_where_pairs_still_fit(
    setup: float, window: float, budget: float, expected: int
) -> None:
    assert plan.rounds(setup, window, budget) == expected


def test_room() -> None:
    assert plan.room_for(3, 10.0, 45.0) == 7
    assert plan.room_for(3, 10.0, -5.0) == 3
    assert plan.another_fits(10.0, 10.0)
    assert not plan.another_fits(10.0, 9.0)


def test_more_time_is_as_long_as_enough_pairs_take_and_longer_than_what_did_not_do() -> None:
    assert plan.minutes_for(3, 40.0) == 3
    assert plan.enough_minutes(40.0, budget=60.0) == 3
    assert plan.enough_minutes(10.0, budget=60.0) == 2
    assert plan.enough_minutes(10.0, budget=90.0) == 2


@pytest.mark.parametrize(
    ("number", "lasted", "measuring", "goes_on"),
    [
        (0, 500.0, 0.0, True),
        (1, 500.0, 400.0, True),
        (plan.LEAST_ROUNDS, 60.0, 30.0, True),
        (plan.LEAST_ROUNDS, 100.0, 60.0, False),
        (3, 500.0, 400.0, True),
        (4, 99.0, 60.0, True),
        (4, 101.0, 60.0, False),
    ],
)
def test_a_pair_that_takes_too_long_ends_after_an_even_number_of_rounds(
    number: int, lasted: float, measuring: float, goes_on: bool
) -> None:
    """Two more would take it beyond 130 s, where it has a share of 100."""
    assert plan.goes_on(number, lasted, measuring, 100.0) is goes_on


@pytest.mark.parametrize(("pairs", "goes_on"), [(LEAST_PAIRS, False), (LEAST_PAIRS + 1, True)])
def test_a_pair_leaves_as_much_time_for_each_of_those_that_a_claim_needs(pairs: int, goes_on: bool) -> None:
    assert plan.goes_on(2, 80.0, 30.0, 100.0, pairs) is goes_on
