"""How long an examination wants: figures of its first process in, seconds out."""

from __future__ import annotations

import math

import pytest

from bottleneck_doctor.documents.labels import CONTROL
from bottleneck_doctor.examine import time_wanted
from bottleneck_doctor.examine.time_wanted import LONGEST, MARGIN, Wanted
from bottleneck_doctor.measure.pairing import Pair


def pair(ratio: float, key: str = CONTROL) -> Pair:
    return Pair(key, 1, 1, math.log(ratio), 0.0)


def test_the_spread_of_windows_is_that_of_the_training_as_written() -> None:
    assert time_wanted.window_spread([pair(2.0, "num_workers=1")]) == 0.0
    calm = [pair(1.01), pair(0.99), pair(1.01)]
    assert time_wanted.window_spread(calm) == pytest.approx(0.01 / 0.6745, rel=0.02)
    assert time_wanted.window_spread([*calm, pair(1.6)]) < 0.02, "one wild window says little of the others"


def test_what_leads_looks_faster_by_more_than_windows_of_the_same_training_differ() -> None:
    calm = [pair(1.01), pair(0.99), pair(1.01)]
    wild = [pair(0.8), pair(1.25), pair(1.3)]
    for looks, leads_in_calm, leads_in_wild in ((1.05, False, False), (1.3, True, False), (2.5, True, True)):
        seen = [pair(looks, "fast"), pair(3.0, "ceiling")]
        assert time_wanted.leads([*calm, *seen], {"fast"}, 1.1) is leads_in_calm
        assert time_wanted.leads([*wild, *seen], {"fast"}, 1.1) is leads_in_wild
    often = [pair(1.45, "fast")] * 9
    assert time_wanted.leads([*wild, *often], {"fast"}, 1.1), "the mean of many windows is surer than one"


def test_a_claim_takes_three_processes_and_more_where_it_is_harder() -> None:
    large, small = (time_wanted.processes_for(speed, 0.01, 5) for speed in (2.0, 1.1))
    assert large == 3 < small
    assert small < time_wanted.processes_for(1.1, 0.05, 5) <= 8
    assert time_wanted.processes_for(1.05, 0.5, 5) == 8, "as many as there ever are"
    for nothing in (0.5, 1.0, 1.02):
        assert time_wanted.processes_for(nothing, 0.2, 5) == 3


def test_what_is_wanted_is_starts_and_blocks() -> None:
    want = time_wanted.wanted(4, (1, 1), 20.0, 5.0, (30.0, 15.0), 0.02)
    assert want.seconds == pytest.approx(3 * MARGIN * (20 + 5 + 30))
    assert want.least == pytest.approx(2 * MARGIN * (20 + 5 + 15))
    # What has no window yet takes as many processes as a claim needs.
    new = time_wanted.wanted(3, (0, 1), 20.0, 5.0, (30.0, 15.0), 0.02)
    assert new.seconds == pytest.approx(3 * MARGIN * (20 + 5 + 30))
    assert time_wanted.wanted(3, (3, 3), 20.0, 5.0, (30.0, 15.0), 0.02).seconds == 0.0


@pytest.mark.parametrize(
    ("seconds", "least", "promising", "more"),
    [
        (90.0, 60.0, True, 0.0),
        (100.0, 60.0, True, 0.0),
        (150.0, 60.0, True, 50.0),
        (LONGEST, 60.0, True, LONGEST - 200.0),
        (LONGEST, LONGEST, True, None),
        (LONGEST, 60.0, False, None),
        (150.0, 60.0, False, 50.0),
    ],
)
def test_time_is_added_where_an_answer_comes_of_it(
    seconds: float, least: float, promising: bool, more: float | None
) -> None:
    """100 s are left to measure, of 200 in all."""
    want = Wanted(3, seconds, least, 0.01)
    assert time_wanted.extension(want, 100.0, 200.0, promising=promising) == more


def test_no_time_is_added_to_more_than_the_longest() -> None:
    assert time_wanted.extension(Wanted(3, 500.0, 50.0, 0.0), 100.0, LONGEST + 90.0, promising=True) == 0.0
    assert time_wanted.extension(Wanted(3, 500.0, 150.0, 0.0), 100.0, LONGEST + 90.0, promising=True) is None


def test_the_budget_for_a_claim_is_in_whole_minutes() -> None:
    want = Wanted(3, 0.0, 300.0, 0.0)
    assert time_wanted.budget_for(want, 75.0, 40.0, 0.25) == 540.0
    assert time_wanted.budget_for(want, 75.0, 40.0, 0.0) == 420.0


@pytest.mark.parametrize(
    ("speed", "spread", "tried", "processes"),
    [(2.0, 0.02, 8, 2), (1.1, 0.02, 8, 3), (1.4, 0.02, 1, 2), (1.4, 0.3, 1, 3), (1.0, 0.0, 1, 3), (0.5, 0.0, 1, 3)],
)
def test_two_processes_do_for_what_is_large(speed: float, spread: float, tried: int, processes: int) -> None:
    assert time_wanted.fewest_for(speed, spread, tried) == processes
