"""When a process is warm: two windows of one speed, or as many as warming up may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.gate_samples import window
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure.burn_in import (
    MOST_WINDOWS,
    WARMED_UP_SECONDS,
    burn_in,
    most_windows,
    needed,
    shown_speed,
)
from bottleneck_doctor.measure.schedule import level


def taken(
    windows: Sequence[Window],
    *,
    seconds: float = 0.0,
    most_seconds: float = float("inf"),
    last: float | None = None,
) -> tuple[bool, int]:
    """What came of it, and how many windows that took, each of which takes `seconds`."""
    left, clock = list(windows), [0.0]

    def measure() -> Window:
        clock[0] += seconds
        return left.pop(0)

    warm = burn_in(measure, last=last, most_seconds=most_seconds, now=lambda: clock[0])
    return warm, len(windows) - len(left)


@pytest.mark.parametrize(
    ("steps", "count"),
    [((0.10, 0.101, 0.1), 2), ((0.15, 0.10, 0.101), 3), ((0.4, 0.2, 0.1, 0.1), MOST_WINDOWS)],
)
def test_it_ends_when_two_windows_are_level(steps: tuple[float, ...], count: int) -> None:
    assert taken([window(1, step) for step in steps]) == (True, count)


def test_what_is_compared_is_samples_and_not_steps() -> None:
    """Half as many in steps of half the length are the same speed."""
    assert taken([window(1, 0.10, samples=4.0), window(1, 0.05, samples=2.0)]) == (True, 2)


def test_none_is_begun_once_its_time_is_over() -> None:
    steps = [window(1, step) for step in (0.4, 0.2, 0.1)]
    assert taken(steps, seconds=1.0, most_seconds=1.5) == (True, 2)


def test_a_window_before_counts() -> None:
    assert taken([window(1, 1.0)] * 2, last=shown_speed(window(1, 1.0))) == (True, 1)
    assert taken([window(1, 1.0)] * 2, last=shown_speed(window(1, 2.0))) == (True, 2)


def test_a_window_that_timed_nothing_says_nothing() -> None:
    assert taken([window(1, 0.10, samples=0.0)]) == (False, 1)


@pytest.mark.parametrize(
    ("steps", "epoch_seconds", "cold"),
    [
        ([0.1] * 9, 0.0, False),
        ([0.9, 0.5, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1], 0.0, True),
        ([0.9, 0.5, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1], 2 * WARMED_UP_SECONDS, False),
        ([0.9, 0.5, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1], 0.5 * WARMED_UP_SECONDS, True),
    ],
)
def test_level_first_steps_and_long_epochs_have_warmed_up(steps: list[float], epoch_seconds: float, cold: bool) -> None:
    costs: Any = SimpleNamespace(epochs=epoch_seconds > 0, epoch_seconds=epoch_seconds)
    assert needed(replace(FOUND, step_seconds=steps), costs) is cold


@pytest.mark.parametrize(
    ("explained", "cold"),
    [
        ((2.55, 2.5), False),
        ((3.5, 2.5), True),
        ((3.5, 2.55, 2.5), False),
        ((2.5,), True),
        ((0.0255, 0.025), True),
        ((), True),
    ],
)
def test_windows_that_explained_have_warmed_up_what_takes_long_steps(explained: Sequence[float], cold: bool) -> None:
    """Of short steps timers take a part: those say nothing."""
    costs: Any = SimpleNamespace(epochs=False)
    found = replace(FOUND, step_seconds=[9.0, 5.0, 3.0, 2.9, 2.8, 2.7, 2.6])
    assert not level(found.step_seconds)
    assert needed(found, costs, [window(1, step) for step in explained]) is cold


@pytest.mark.parametrize(("step", "regular", "most"), [(2.0, True, 1), (2.0, False, 3), (0.2, True, 3)])
def test_one_window_warms_up_long_steps_that_were_alike_in_the_first_process(
    step: float, regular: bool, most: int
) -> None:
    costs: Any = SimpleNamespace(regular=regular, baseline_step=step)
    assert most_windows(costs) == most
    taken: list[Window] = []

    def measure() -> Window:
        taken.append(window(10, step * (1 + 0.2 * len(taken))))
        return taken[-1]

    burn_in(measure, most=most_windows(costs))
    assert len(taken) == most
