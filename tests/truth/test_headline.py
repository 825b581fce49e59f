"""The headline of whole examinations on a machine that is made up: a small version of `benchmarks/headline.py`."""

from __future__ import annotations

import random

import pytest
from tests.benchmark import load

from bottleneck_doctor.render import html

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


@pytest.mark.parametrize("seed", range(24))
def test_no_machine_is_too_strange_for_an_examination(seed: int) -> None:
    """Gains of a hundred times, processes that differ by a factor, and steps of milliseconds to ten seconds: there is a
    report, or one clear error."""
    generator = random.Random(seed)
    settings = [*(("num_workers", count) for count in (0, 1, 2, 4)), ("autocast", "bfloat16")]
    worth = {each: 10 ** generator.uniform(-1.5, 2.5) for each in settings}
    row = simulation.Row(
        "strange",
        worth,
        process=generator.choice([0.0, 0.05, 0.8]),
        window=generator.choice([0.0, 0.02, 0.5]),
        heavy=generator.random() < 0.5,
        neighbour=generator.choice([(1.0, 0.0, 0.0), (20.0, 5.0, 2.0), (300.0, 90.0, 1.0)]),
        step=10 ** generator.uniform(-3, 1),
        start=10 ** generator.uniform(0, 2),
    )
    made = simulation.examined(row, seed)
    if made.outcome is None:
        assert made.error.slug
    else:
        assert made.outcome.bug is None
        assert html.render(made.result)
