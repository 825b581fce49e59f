"""What age takes from a baseline: nothing where times know nothing of each other, much where they drift."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance

import pytest
from tests.unit.stored_samples import NOISE, draw, stored, take

from bottleneck_doctor.documents.check import STEP_TIME
from bottleneck_doctor.documents.stored_baseline import Draw
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.baseline import against, aging, unpaired
from bottleneck_doctor.gate.decide import InterimLook
from bottleneck_doctor.gate.limits import DEFAULTS
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.render import baseline as text

DAY = 86_400.0
ONCE = InterimLook(8, 1.0)


def nights(count: int, after: float) -> list[float]:
    """Seconds since each of so many nights, oldest first; the last was `after` days ago."""
    return [(count - 1 - number + after) * DAY for number in range(count)]


def walk(generator: random.Random, count: int, nightly: float) -> list[float]:
    """What a machine is at after each night: it goes up or down by so much."""
    at = [0.0]
    for _ in range(count - 1):
        at.append(at[-1] + generator.gauss(0, nightly))
    return at


def test_drift_is_told_from_noise() -> None:
    generator = random.Random(1)
    noise = [aging.walked([generator.gauss(0, 1) for _ in range(8)]) for _ in range(500)]
    drift = [aging.walked(walk(generator, 8, 1.0)) for _ in range(500)]
    assert fmean(noise) < 0.3
    assert fmean(drift) > 0.75
    assert all(0.0 <= each <= 1.0 for each in (*noise, *drift))


def test_too_few_times_and_times_that_agree_show_no_drift() -> None:
    assert aging.walked([0.0, 0.1, 0.2, 0.3]) == 0.0
    assert aging.walked([0.1] * 8) == 0.0
    assert aging.added([0.0, 0.1, 0.2, 0.3, 0.4], [0.0] * 5) == 0.0
    assert aging.added([], []) == 0.0


def test_what_drifts_says_less_with_each_day() -> None:
    means = [0.00, 0.01, 0.02, 0.03, 0.02, 0.01, 0.02, 0.03]
    fresh, week, month = (aging.added(means, nights(8, after)) for after in (0.0, 7.0, 28.0))
    assert fresh == pytest.approx(aging.walked(means) * variance(means))
    assert week == pytest.approx(7 * fresh)
    assert month == pytest.approx(25 * fresh)
    # A baseline can't be younger than today, whatever the clock says.
    assert aging.added(means, nights(8, -3.0)) == pytest.approx(fresh)


@pytest.mark.parametrize(("after", "most"), [(1.0, 0.03), (14.0, 0.08)])
def test_a_machine_that_drifts_is_rarely_taken_for_a_regression(after: float, most: float) -> None:
    """Two weeks later in 4 % of checks, for eight times of a walk may look as if they knew nothing of each other."""
    generator = random.Random(3)
    alarms = {"aged": 0, "not aged": 0}
    for _ in range(400):
        at = walk(generator, 8 + round(after), 0.01)
        times = [[mean + generator.gauss(0, 0.003) for _ in range(5)] for mean in at[:8]]
        head = [at[-1] + generator.gauss(0, 0.003) for _ in range(5)]
        for name, ages in (("aged", nights(8, after)), ("not aged", [])):
            seen = against.estimate(head, times, 0.0, 0.15, ages)
            alarms[name] += decide.decide(seen, 0.0, ONCE) == "regression"
    assert alarms["aged"] / 400 <= most
    assert alarms["not aged"] > (2 if after > 1 else 1) * alarms["aged"]


def test_a_machine_that_jumps_about_loses_little_overnight() -> None:
    generator = random.Random(4)
    wider = []
    for _ in range(300):
        times = [
            [at + generator.gauss(0, 0.003) for _ in range(5)] for at in (generator.gauss(0, 0.01) for _ in range(8))
        ]
        head = [generator.gauss(0, 0.01) for _ in range(5)]
        aged, plain = (against.estimate(head, times, 0.0, 0.15, ages) for ages in (nights(8, 1.0), []))
        wider.append(aged.standard_error / plain.standard_error)
    assert fmean(wider) < 1.2


# -- what is told ------------------------------------------------------------------------------------------------------


def drifting(rises: Sequence[float]) -> list[list[Draw]]:
    """Times of a step of 20 ms and more, a day apart."""
    return [
        [draw(0.020 * (1 + rise + NOISE[number % 5] / 10), day) for number in range(5)]
        for day, rise in enumerate(rises)
    ]


RISING = (0.00, 0.012, 0.019, 0.031, 0.040, 0.052, 0.058)
JUMPING = (0.00, 0.05, 0.01, 0.06, -0.01, 0.04, 0.00)


def test_an_old_baseline_that_drifts_is_told() -> None:
    how = Judging(DEFAULTS, ONCE, 5, True)

    def told(rises: Sequence[float], after: float) -> list[str]:
        head = [replace(each, taken=draw(0.02, len(rises) - 1 + after).taken) for each in drifting([rises[-1]])[0]]
        times = drifting(rises)
        found = unpaired.weak_evidence(times, head, how, unpaired.judged(times, head, how))
        return [each.sentence for each in found if each.slug == "baseline-old"]

    (sentence,) = told(RISING, 30.0)
    assert "last measured 30 days ago" in sentence
    assert told(RISING, 0.1) == []
    assert told(JUMPING, 30.0) == []


def test_intervals_widen_with_age() -> None:
    how = Judging(DEFAULTS, ONCE, 5, True)

    def width(after: float) -> float:
        head = [replace(each, taken=draw(0.02, 6 + after).taken) for each in drifting([0.03])[0]]
        step = next(each for each in unpaired.judged(drifting(RISING), head, how) if each.id == STEP_TIME)
        assert step.low is not None
        assert step.high is not None
        return step.high - step.low

    assert width(0.0) < width(3.0) < width(30.0)


def test_making_a_baseline_tells_its_trend() -> None:
    def said(rises: Sequence[float]) -> str:
        made = stored(takes=[take(draws) for draws in drifting(rises)])
        return " ".join(text.render(made, [], file="base.json", check=["doctor"], limits=DEFAULTS, width=None).split())

    assert "From the first time to the last, the step time rose by 5.9 %." in said(RISING)
    assert "the step time fell by" in said([-rise for rise in RISING])
    assert "From the first time" not in said(JUMPING)


def test_a_trend_is_told_where_it_is_one() -> None:
    rose = unpaired.trend(drifting(RISING))
    assert rose is not None
    assert rose == pytest.approx(0.059, abs=0.006)
    assert unpaired.trend(drifting(JUMPING)) is None
    assert unpaired.trend(drifting(RISING[:4])) is None
    assert unpaired.trend([]) is None
    assert aging.trend([0.01] * 6, [DAY] * 6) is None
    fell = aging.trend([-rise for rise in RISING], nights(7, 0.0))
    assert fell is not None
    assert math.isclose(fell, -0.0594, abs_tol=0.006)
