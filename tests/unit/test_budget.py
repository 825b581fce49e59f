"""Time to measure and time set apart from it: neither takes from the other, and what is left over is not lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.measure.budget import Allowance, Budget


class Passing:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def now() -> Passing:
    return Passing()


def test_seconds_that_pass_are_spent(now: Passing) -> None:
    budget = Budget(10.0, strict=True, now=now)
    now.now += 4.0
    assert (budget.elapsed(), budget.spent(), budget.left()) == (4.0, 4.0, 6.0)
    assert budget.until_end() == math.inf
    assert budget.total is None


def test_what_is_forgiven_is_gone_and_not_spent(now: Passing) -> None:
    budget = Budget(10.0, strict=False, now=now)
    now.now += 4.0
    budget.forgive(3.0)
    assert (budget.elapsed(), budget.spent(), budget.left()) == (4.0, 1.0, 9.0)


def test_what_is_extended_is_there_to_measure_and_ends_later(now: Passing) -> None:
    budget = Budget(10.0, strict=False, now=now)
    budget.end_by(15.0, 2.0)
    allowance = budget.reserve(3.0)
    now.now += 9.0
    assert (budget.left(), budget.extended) == (1.0, 0.0)
    budget.extend(20.0)
    assert (budget.left(), budget.until_end(), budget.total) == (21.0, 24.0, 35.0)
    assert (budget.seconds, budget.extended, allowance.left()) == (30.0, 20.0, 3.0)


def test_the_end_of_all_is_a_limit_to_everything(now: Passing) -> None:
    budget = Budget(10.0, strict=True, now=now)
    allowance = Allowance(budget, 50.0, inside=False)
    now.now += 4.0
    budget.end_by(8.0, 1.5)
    assert budget.total == 8.0
    assert budget.until_end() == budget.left() == allowance.left() == 2.5
    assert allowance.room(2.5)
    assert not allowance.room(2.6)


def test_what_is_reserved_comes_off_a_budget_that_the_user_set_and_on_top_of_ours(now: Passing) -> None:
    budgets = Budget(100.0, strict=True, now=now), Budget(100.0, strict=False, now=now)
    assert [budget.reserve(30.0).left() for budget in budgets] == [30.0, 30.0]
    assert [budget.seconds for budget in budgets] == [70.0, 100.0]


def test_time_spent_on_an_allowance_is_not_the_budgets(now: Passing) -> None:
    budget = Budget(100.0, strict=True, now=now)
    allowance = budget.reserve(5.0)
    before = budget.left()
    with allowance.charged():
        now.now += 2.0
        with allowance.charged():
            now.now += 1.0
        assert budget.left() > before
        assert allowance.room(50.0), "what is being spent may be spent whole"
    assert budget.left() == before
    assert allowance.left() == 2.0
    assert not allowance.room(2.5)


def test_what_is_spent_of_an_allowance_is_spent_whatever_happens(now: Passing) -> None:
    allowance = Budget(100.0, strict=True, now=now).reserve(5.0)

    def breaks() -> None:
        with allowance.charged():
            now.now += 4.0
            raise RuntimeError

    with pytest.raises(RuntimeError):
        breaks()
    assert allowance.left() == 1.0


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_lent_to_measuring_comes_back_as_far_as_it_is_left(strict: bool, now: Passing) -> None:
    budget = Budget(10.0, strict=strict, now=now)
    now.now += 8.0
    allowance = Allowance(budget, 6.0, inside=budget.strict)
    with allowance.lent():
        assert budget.left() == 8.0
        now.now += 3.0
    # Two of its own, and one of those that were lent.
    assert (allowance.left(), budget.left()) == (5.0, 0.0)
    with allowance.lent():
        now.now += 9.0
    assert allowance.left() == 0.0


def test_what_measuring_leaves_is_inherited(now: Passing) -> None:
    budget = Budget(10.0, strict=True, now=now)
    allowance = budget.reserve(2.0)
    now.now += 3.0
    allowance.inherit()
    assert (allowance.left(), budget.left()) == (7.0, 0.0)
    now.now += 1.0
    allowance.inherit()
    assert allowance.left() == 7.0, "there is nothing more to have"


def test_what_is_not_needed_goes_back_where_it_came_from(now: Passing) -> None:
    budgets = Budget(10.0, strict=True, now=now), Budget(10.0, strict=False, now=now)
    for budget in budgets:
        allowance = budget.reserve(3.0)
        allowance.give_back()
        assert allowance.left() == 0.0
    assert [budget.left() for budget in budgets] == [10.0, 10.0]


@pytest.mark.parametrize(("strict", "left"), [(True, 100.0), (False, math.inf)])
def test_a_patient_one_goes_on_where_the_budget_ends(strict: bool, left: float, now: Passing) -> None:
    budget = Budget(300.0, strict=strict, now=now)
    now.now += 500.0
    assert budget.patient().left() == left
    assert not budget.patient().strict


@given(
    seconds=st.floats(1.0, 1000.0),
    share=st.floats(0.0, 1.0),
    steps=st.lists(st.tuples(st.sampled_from(["measure", "charge", "lend", "inherit", "give back"]), st.floats(0, 1))),
)
def test_no_second_is_lost_or_made(seconds: float, share: float, steps: list[tuple[str, float]]) -> None:
    """Whoever takes a part of what it has: all that is left is left for measuring, or set apart."""
    now = Passing()
    budget = Budget(seconds, strict=True, now=now)
    allowance = budget.reserve(share * seconds)
    for what, part in steps:
        if what == "measure":
            now.now += part * budget.left()
        elif what == "charge":
            with allowance.charged():
                now.now += part * allowance.left()
        elif what == "lend":
            with allowance.lent():
                now.now += part * budget.left()
        elif what == "inherit":
            allowance.inherit()
        else:
            allowance.give_back()
        assert budget.left() >= -1e-6
        assert budget.left() + allowance.left() == pytest.approx(seconds - budget.elapsed(), abs=1e-6)
