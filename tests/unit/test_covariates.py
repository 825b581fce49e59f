"""What covariates cost: slopes whose answer is known."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from bottleneck_doctor.statistics.covariates import Seen, slopes

STEEPEST = 4.0


def seen(costs: list[tuple[float, float]], session: int = 1, luck: float = 0.0) -> list[Seen]:
    return [Seen(session, luck + cost, (at,)) for at, cost in costs]


def slope(windows: list[Seen]) -> float:
    return slopes(windows, [STEEPEST])[0]


def test_what_a_covariate_adds_is_seen_within_processes() -> None:
    line = [(0.1 * k, 0.08 * k) for k in range(4)]
    windows = [*seen(line), *seen(line, 2, luck=5.0)]
    assert slope(windows) == pytest.approx(0.8, rel=0.01)
    # Between two processes luck differs: what only they differ by is no covariate's.
    assert slope([*seen([(0.0, 0.0)] * 4), *seen([(0.5, 0.4)] * 4, 2)]) == 0.0


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ([(0.0, 0.0), (0.5, 0.4), (0.1, 0.08)], "three windows fit any line"),
        ([(0.3, 0.01 * (k % 3)) for k in range(8)], "the covariate never changed"),
        ([(0.3 + 1e-9 * k, 0.01 * k) for k in range(8)], "the covariate hardly changed"),
        ([(0.1 * k, -0.05 * k) for k in range(8)], "nobody is faster for having neighbours, or longer batches"),
        ([], "nothing was measured"),
    ],
)
def test_no_slope_where_none_can_be_told(costs: list[tuple[float, float]], why: str) -> None:
    assert slope(seen(costs)) == 0.0, why


def test_a_slope_that_chance_explains_is_not_believed() -> None:
    generator = random.Random(7)
    found = [slope(seen([(generator.random(), generator.gauss(0.0, 0.05)) for _ in range(8)])) for _ in range(400)]
    assert fmean(each > 0 for each in found) < 0.1
    assert fmean(found) < 0.005
    steep = slope(seen([(0.05 * k, 5.0 * k) for k in range(8)]))
    assert steep == STEEPEST


def test_two_covariates_are_told_apart() -> None:
    generator = random.Random(3)

    def window(session: int) -> Seen:
        load = generator.random()
        # They go together for the most part, so that each alone would be given what the other one costs, too.
        size = load + generator.gauss(0.0, 0.2)
        return Seen(session, session + 0.5 * load + 1.2 * size + generator.gauss(0.0, 0.005), (load, size))

    windows = [window(session) for session in range(3) for _ in range(6)]
    assert slopes(windows, [4.0, 2.0]) == pytest.approx([0.5, 1.2], abs=0.05)
    assert slopes(windows, [4.0, 1.0])[1] == 1.0


def test_what_one_covariate_explains_is_not_given_to_the_other() -> None:
    generator = random.Random(5)
    windows = []
    for _ in range(10):
        load, size = generator.random(), generator.random()
        windows.append(Seen(1, size + generator.gauss(0.0, 0.002), (load, size)))
    assert slopes(windows, [4.0, 2.0]) == pytest.approx([0.0, 1.0], abs=0.01)
    # One that never changes takes nothing from the other.
    assert slopes([Seen(each.session, each.log_cost, (0.3, each.covariates[1])) for each in windows], [4.0, 2.0]) == (
        pytest.approx([0.0, 1.0], abs=0.01)
    )


def test_of_two_covariates_that_say_the_same_not_both_are_believed() -> None:
    same = [Seen(1, 0.8 * k / 10 + 0.001 * (k % 2), (k / 10, k / 10)) for k in range(8)]
    first, second = slopes(same, [4.0, 4.0])
    assert first + second == pytest.approx(0.8, rel=0.05)
    assert min(first, second) == 0.0
