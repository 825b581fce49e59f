"""How much windows of one process differ, and what a ratio of few of them is worth: simulated, with a known answer."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from bottleneck_doctor.measure.repeats import FEWEST, half_width


@pytest.mark.parametrize("windows", [4, 6, 20])
@pytest.mark.parametrize("pairs", [1, 2])
def test_the_interval_holds_the_truth_as_often_as_it_says(windows: int, pairs: int) -> None:
    generator = random.Random(11)
    held = 0
    trials = 3000
    for _ in range(trials):
        logs = [generator.gauss(0, 0.05) for _ in range(windows)]
        changes = [after - before for before, after in pairwise(logs)]
        ratios = []
        for at in range(pairs):
            before, after = logs[2 * at], logs[2 * at + 1]
            ratios.append((before + after) / 2 - generator.gauss(0, 0.05))
        half = half_width(changes, pairs)
        assert half is not None
        held += abs(sum(ratios) / pairs) <= half
    # Changes that share a window are not independent, so few of them know a little less than their number says.
    assert 0.92 <= held / trials <= 0.99


def test_too_few_windows_say_nothing() -> None:
    assert half_width([0.01] * (FEWEST - 1), 1) is None
    assert half_width([0.01] * FEWEST, 0) is None
