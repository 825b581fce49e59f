"""Windows of two processes that hold the same steps, by sums whose answer is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.measure.alignment import MOST_EXTRA, MOST_LONGER, Standing, aligned
from bottleneck_doctor.measure.schedule import WindowSize


def standing(position: int, steps: int, step: float = 0.1, lead_in: int = 2, unit: int = 1, **more: int) -> Standing:
    return Standing(position, WindowSize(lead_in, steps, unit=unit), step, **more)


def test_the_faster_side_says_how_many_steps_a_window_holds() -> None:
    assert aligned([standing(12, 7, 0.1), standing(12, 9, 0.08)], 1) == [WindowSize(2, 9), WindowSize(2, 9)]
    # One that is far faster makes no window of the other one take many times as long.
    made = aligned([standing(12, 7, 0.1), standing(12, 70, 0.01)], 1)
    assert made is not None
    assert {size.steps for size in made} == {7 * MOST_LONGER}


def test_the_side_that_is_behind_comes_up() -> None:
    made = aligned([standing(12, 7), standing(15, 7)], 1)
    assert made == [WindowSize(2, 7, skipped=3), WindowSize(2, 7)]
    # So does one that needs no lead-in of a queue.
    made = aligned([standing(12, 8), standing(12, 8, lead_in=6, unit=2)], 1)
    assert made == [WindowSize(2, 8, skipped=4), WindowSize(6, 8, unit=2)]


def test_no_window_is_longer_than_a_life_allows() -> None:
    made = aligned([standing(12, 7), standing(12, 12, 0.06, most_steps=10)], 1)
    assert made is not None
    assert {size.steps for size in made} == {10}
    assert aligned([standing(12, 8, unit=8), standing(12, 12, unit=8, most_steps=6)], 1) is None


@pytest.mark.parametrize(
    ("sides", "why"),
    [
        ([standing(12, 7)], "one process has nobody to go with"),
        ([Standing(12, WindowSize(1, 0, 2), 0.1), standing(12, 7)], "whole epochs hold the same by themselves"),
        ([standing(12, 7), standing(40, 7)], "it would take four windows to come up"),
        ([standing(12, 7), standing(15, 7, unit=2)], "they stand at different places of a period"),
    ],
)
def test_where_it_can_not_be_had_each_asks_for_its_own(sides: list[Standing], why: str) -> None:
    assert aligned(sides, 2) is None, why


@given(
    st.lists(
        st.builds(
            standing,
            st.integers(0, 40),
            st.integers(2, 60),
            st.floats(0.001, 3.0),
            st.integers(1, 30),
            st.sampled_from([1, 2, 4, 6]),
        ),
        min_size=2,
        max_size=4,
    )
)
def test_timed_parts_begin_and_end_together_and_cost_little(sides: list[Standing]) -> None:
    made = aligned(sides, 1)
    if made is None:
        return
    begins = {side.position + size.skipped + size.lead_in for side, size in zip(sides, made, strict=True)}
    assert len(begins) == 1
    [steps] = {size.steps for size in made}
    for side, size in zip(sides, made, strict=True):
        assert steps % size.unit == 0
        assert size.lead_in == side.size.lead_in
        assert size.skipped >= 0
    more = sum(
        side.step * (max(0, steps - side.size.steps) + size.skipped) for side, size in zip(sides, made, strict=True)
    )
    assert more <= MOST_EXTRA * max(side.size.steps * side.step for side in sides) * (1 + 1e-9)
