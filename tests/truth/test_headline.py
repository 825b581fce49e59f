"""The headline of whole examinations on a machine that is made up: a small version of `benchmarks/headline.py`."""

from __future__ import annotations

import pytest
from tests.benchmark import load

simulation = load("headline")

EXAMINATIONS = 12
BY_NAME = {row.name: row for row in simulation.rows()}


@pytest.mark.parametrize("truth", ["nothing helps", "all is slower"])
def test_nothing_is_named_where_nothing_helps(truth: str) -> None:
    row = BY_NAME[f"{truth}; windows 6 %"]
    assert simulation.summary(row, EXAMINATIONS, seed=1).right == EXAMINATIONS


def test_the_best_is_named_and_nothing_without_need() -> None:
    """What is seen twelve times can't hold a rate of 5 %: the bounds are those of twelve draws."""
    told = simulation.summary(BY_NAME["workers 1.6, autocast 1.3; quiet"], EXAMINATIONS, seed=1)
    assert told.right >= 10
    assert told.needless <= 3
    assert told.held >= 0.75 * told.named
    assert told.bias is not None
    assert abs(told.bias) < 0.02
