"""Losses of pairs of processes: what is the same, what chance explains, and what has moved. The truth is known."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.gate_samples import pair

from bottleneck_doctor.gate import losses
from bottleneck_doctor.gate.losses import compared
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.statistics.scatter import scatter
from bottleneck_doctor.wording.check_words import EDITED

STEPS = 120


def falling(step: int) -> float:
    """A loss that falls from 2.3 to 0.8 or so."""
    return 0.8 + 1.5 * math.exp(-step / 60)


def noisy(generator: random.Random, *, spread: float = 0.15, luck: float = 0.0, times: float = 1.0) -> dict[int, float]:
    """A training's losses: every step has draws of its own, and the whole process has its `luck`."""
    of_process = math.exp(generator.gauss(0, luck))
    return {
        step: times * of_process * falling(step) * math.exp(generator.gauss(0, spread)) for step in range(10, STEPS)
    }


def paired(*both: tuple[Mapping[int, float], Mapping[int, float]]) -> list[PairSample]:
    whole = pair(1, 0.010, 0.010)
    return [
        replace(whole, number=at, base=replace(whole.base, losses=base), head=replace(whole.head, losses=head))
        for at, (base, head) in enumerate(both, 1)
    ]


def verdict(*both: tuple[Mapping[int, float], Mapping[int, float]]) -> str:
    found = compared(paired(*both), EDITED)
    assert found is not None
    return found.verdict


def test_the_same_losses_are_the_same() -> None:
    base = noisy(random.Random(1))
    found = compared(paired((base, base), (base, base)), EDITED)
    assert found is not None
    assert (found.verdict, found.difference, found.steps) == ("same", 0.0, 2 * len(base))
    assert found.sentence == "The losses are the same over 220 steps in 2 pairs."
    assert len(found.curve) <= losses.POINTS
    assert found.curve[0].step == 10


def test_rounding_is_no_other_loss() -> None:
    generator = random.Random(2)
    base = noisy(generator)
    rounded = {step: loss * (1 + 0.004 * generator.gauss(0, 1)) for step, loss in base.items()}
    assert verdict((base, rounded), (base, rounded), (base, rounded)) == "alike"


@pytest.mark.parametrize("luck", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("pairs", [2, 3, 5])
def test_trainings_that_differ_by_chance_alone_are_hardly_ever_told_apart(luck: float, pairs: int) -> None:
    generator = random.Random(3)
    count = 400
    wrong = sum(
        verdict(*((noisy(generator, luck=luck), noisy(generator, luck=luck)) for _ in range(pairs))) == "moved"
        for _ in range(count)
    )
    assert wrong <= 0.02 * count


def test_seeded_trainings_with_other_draws_are_not_told_apart() -> None:
    """The base repeats itself in every pair, and so does the head: only their draws differ."""
    generator = random.Random(4)
    count = 400
    wrong = 0
    for _ in range(count):
        base, head = noisy(generator, luck=0.05), noisy(generator, luck=0.05)
        wrong += verdict(*[(base, head)] * 3) == "moved"
    assert wrong <= 0.01 * count


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("times", [0.6, 1.5, 4.0])
def test_another_loss_is_seen(seeded: bool, times: float) -> None:
    generator = random.Random(5)
    both = [(noisy(generator, luck=0.01), noisy(generator, luck=0.01, times=times)) for _ in range(3)]
    found = compared(paired(*([both[0]] * 3 if seeded else both)), EDITED)
    assert found is not None
    assert found.verdict == "moved"
    assert found.difference == pytest.approx(times - 1, abs=0.1)
    way = "higher" if times > 1 else "lower"
    assert found.sentence.startswith("The edited program trains to another loss: ")
    assert f" {way} over 330 steps in 3 pairs." in found.sentence


def test_a_training_that_diverges_differently_every_time_is_seen() -> None:
    generator = random.Random(10)
    both = []
    for power in (3, 8, 15):
        base = noisy(generator)
        both.append((base, {step: loss * math.exp(power * step / STEPS) for step, loss in base.items()}))
    found = compared(paired(*both), EDITED)
    assert found is not None
    assert found.verdict == "moved"
    assert "more than 10 times higher" in found.sentence


def test_one_pair_tells_nothing_of_chance() -> None:
    generator = random.Random(6)
    found = compared(paired((noisy(generator), noisy(generator, times=1.5))), EDITED)
    assert found is not None
    assert found.verdict == "unknown"
    assert found.sentence.endswith("over 110 steps in 1 pair. That may be chance or not: longer runs would tell.")


def test_losses_of_which_chance_hides_all_are_not_called_alike() -> None:
    """Labels that are learnt by heart: what is left of the loss differs by any factor from run to run."""
    generator = random.Random(11)
    both = [(noisy(generator, luck=1.5), noisy(generator, luck=1.5, times=1.6)) for _ in range(9)]
    found = compared(paired(*both), EDITED)
    assert found is not None
    assert found.difference is not None
    assert abs(found.difference) > losses.MOST_ALIKE
    assert found.verdict == "unknown"


def test_a_loss_that_is_no_number() -> None:
    base = noisy(random.Random(7))
    broken = {**base, 100: math.nan}
    assert verdict((base, broken)) == "not_finite"
    assert verdict((base, broken), (base, base), (base, base)) == "same"
    assert verdict((broken, broken)) == "unknown"
    found = compared(paired((base, broken)), EDITED)
    assert found is not None
    assert "no number any more" in found.sentence
    assert any(point.head is None for point in found.curve)


def test_what_can_not_be_compared() -> None:
    base = noisy(random.Random(8))
    few = {step: base[step] for step in range(10, 15)}
    assert verdict((base, few)) == "unknown"
    assert compared(paired(({}, base)), EDITED) is None
    assert verdict((dict.fromkeys(range(50), 0.0), dict.fromkeys(range(50), 0.0))) == "unknown"
    larger = paired((base, base))[0]
    windows = [replace(window, samples=2 * window.samples) for window in larger.head.windows]
    found = compared([replace(larger, head=replace(larger.head, windows=windows))], EDITED)
    assert found is not None
    assert found.sentence == "Losses can't be compared: a step holds other samples."


def test_the_scatter_leaves_the_trend_out() -> None:
    generator = random.Random(9)
    made = [5 * falling(step) + generator.gauss(0, 0.1) for step in range(400)]
    assert scatter(made) == pytest.approx(0.1, rel=0.15)
    assert scatter([1.0, 2.0]) == 0.0
