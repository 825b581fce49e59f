"""What a step waits for data, where that is surer than the step: how often it is wrong, and what it catches."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import pytest
from tests.unit.gate_samples import ROUNDS, side
from tests.unit.gate_samples import pair as plain_pair

from bottleneck_doctor.documents.check import STEP_TIME, Metric
from bottleneck_doctor.gate import decide, metrics, parts, verdict
from bottleneck_doctor.gate.limits import DEFAULTS
from bottleneck_doctor.gate.metrics import Judging, Series
from bottleneck_doctor.measure.side_pairs import Own, PairSample

STEP, WAIT = 0.035, 0.007


@dataclass(frozen=True)
class Luck:
    """Standard deviations of what a pair's sides differ by: in the wait and in the rest, as shares of a step."""

    wait: float
    rest: float


@dataclass(frozen=True)
class Ended:
    step: Metric
    pairs: int


LUCKS = [Luck(0.02, 0.08), Luck(0.01, 0.15), Luck(0.05, 0.05), Luck(0.03, 0.0)]


def simulate(
    luck: Luck, generator: random.Random, *, wait: float = 0.0, rest: float = 0.0, most: int = 20, part: bool = True
) -> Ended:
    """One check whose head waits so much longer, and is so much slower in the rest, as shares of a step."""
    own = Own(luck.wait / 3, ROUNDS - 1)
    waits: list[float] = []
    rests: list[float] = []
    number = 0
    while True:
        number += 1
        waits.append(wait + generator.gauss(0, luck.wait))
        rests.append(max(-0.7, rest + generator.gauss(0, luck.rest)))
        look = decide.interim_look_after(number, last=number == most)
        if look is None:
            continue
        how = Judging(DEFAULTS, look, most, by_part=part)
        steps = [math.log(1 + own_wait + other) for own_wait, other in zip(waits, rests, strict=True)]
        sides = [STEP] * number, [STEP * math.exp(each) for each in steps]
        (step,) = metrics.judged_series([Series(STEP_TIME, *sides, steps, [None] * number)], how)
        if part:
            seen = parts.DataPart([WAIT] * number, [WAIT + STEP * each for each in waits], waits, rests, [own] * number)
            step = metrics.by_part(step, seen, how)
        if step.verdict != "cannot_tell" or number == most:
            return Ended(step, number)


def share(ends: list[Ended], verdict_: str) -> float:
    return sum(end.step.verdict == verdict_ for end in ends) / len(ends)


@pytest.mark.parametrize("luck", LUCKS, ids=str)
def test_identical_revisions_are_hardly_ever_called_worse_by_either(luck: Luck) -> None:
    """Both together keep the promise of one: at a threshold that luck alone may pass."""
    generator = random.Random(21)
    ends = [simulate(luck, generator) for _ in range(600)]
    assert share(ends, "regression") <= decide.ERROR_RATE
    assert not [end for end in ends if end.step.part is not None]


@pytest.mark.parametrize("luck", LUCKS[:3], ids=str)
def test_a_wait_that_grew_by_the_threshold_is_hardly_ever_called_worse(luck: Luck) -> None:
    generator = random.Random(22)
    ends = [simulate(luck, generator, wait=0.05) for _ in range(300)]
    assert share(ends, "regression") <= decide.ERROR_RATE


@pytest.mark.parametrize(("wait", "rest"), [(0.10, -0.10), (0.10, -0.05), (0.20, -0.20)])
@pytest.mark.parametrize("luck", [Luck(0.01, 0.03), *LUCKS[2:]], ids=str)
def test_what_the_rest_gained_is_no_slowdown(luck: Luck, wait: float, rest: float) -> None:
    """The head makes batches for longer and computes for less: the step is what counts."""
    generator = random.Random(23)
    ends = [simulate(luck, generator, wait=wait, rest=rest) for _ in range(200)]
    assert share(ends, "regression") <= 3 * decide.ERROR_RATE


def test_a_wait_that_grew_decides_where_the_step_is_too_restless() -> None:
    """A fifth of a step is waiting, which grew by 45 %; the rest of identical processes differs by 15 % at times."""
    luck = LUCKS[0]
    alone, both = (
        [simulate(luck, random.Random(24 + number), wait=0.45 * WAIT / STEP, part=part) for number in range(150)]
        for part in (False, True)
    )
    assert share(alone, "regression") < 0.3
    assert share(both, "regression") > 0.7
    decided = [end.step for end in both if end.step.part is not None]
    assert len(decided) > 0.4 * len(both)
    for step in decided:
        assert step.part is not None
        assert step.part.low > step.threshold
        assert step.change is not None
        assert step.change > step.threshold


def test_it_costs_little_where_it_decides_nothing() -> None:
    """A slowdown of computing is seen as before, up to a pair or two."""
    alone, both = (
        [simulate(Luck(0.002, 0.01), random.Random(n), rest=0.12, part=part) for n in range(100)]
        for part in (False, True)
    )
    assert share(alone, "regression") == share(both, "regression") == 1
    assert sum(end.pairs for end in both) <= 1.2 * sum(end.pairs for end in alone)


# -- in pairs ----------------------------------------------------------------------------------------------------------


def waiting(number: int, noise: float, *, wait: float = 0.45, loads_itself: bool = True) -> PairSample:
    """A pair whose head waits longer by that part, and whose rest differs by noise."""
    rest = STEP - WAIT
    head = rest * (1 + noise) + WAIT * (1 + wait)
    sides = side(STEP, wait=WAIT / STEP), side(head, wait=WAIT * (1 + wait) / head)
    base, after = (replace(each, loads_itself=loads_itself) for each in sides)
    return PairSample(number=number, base=base, head=after)


NOISE = (0.12, -0.11, 0.06, -0.09, 0.13, 0.02, -0.05, 0.1, -0.02, 0.05)


def checked(*, loads_itself: bool = True) -> tuple[list[PairSample], Judging, list[Metric]]:
    pairs = [waiting(number, noise, loads_itself=loads_itself) for number, noise in enumerate(NOISE, 1)]
    look = decide.interim_look_after(len(pairs), last=False)
    how = Judging(DEFAULTS, look, 20, by_part=parts.has_part(pairs))
    return pairs, how, metrics.judged(pairs, how)


def test_a_step_is_worse_by_what_it_waits_for_data() -> None:
    pairs, how, found = checked()
    step = next(metric for metric in found if metric.id == STEP_TIME)
    assert step.verdict == "regression"
    assert step.part is not None
    assert (step.part.base, step.part.head) == pytest.approx((WAIT, 1.45 * WAIT))
    assert step.part.change == pytest.approx(0.09, abs=0.001)
    assert step.low is not None
    assert step.low < step.threshold, "the step itself can't be told"
    assert verdict.status(found) == "regressed"
    assert not verdict.is_open(found, how)
    said = verdict.sentence(found, "main", len(pairs), [])
    assert said.startswith("A step waits longer for data than on main, by 9 % of a step (10 ms instead of 7.0 ms)")
    assert "but that alone may be chance" in said
    assert "waiting for data alone grew by 9 % of a step" in step.sentence
    assert verdict.growth(found) == pytest.approx(0.45 * WAIT)


def test_what_workers_are_waited_for_decides_nothing() -> None:
    """They make batches while the rest computes: that they are waited for longer may mean that it got faster."""
    _, how, found = checked(loads_itself=False)
    step = next(metric for metric in found if metric.id == STEP_TIME)
    assert not how.by_part
    assert (step.verdict, step.part) == ("cannot_tell", None)
    assert verdict.status(found) == "cannot_tell"


def test_it_is_not_given_up_while_the_part_may_still_tell() -> None:
    pairs = [waiting(number, 4 * noise, wait=0.45 + 0.9 * noise) for number, noise in enumerate(NOISE[:5], 1)]
    futile = []
    for by_part in (True, False):
        how = Judging(DEFAULTS, decide.InterimLook(5, 0.2), 10, by_part=by_part)
        found = metrics.judged(pairs, how)
        assert next(metric.verdict for metric in found if metric.id == STEP_TIME) == "cannot_tell"
        futile.append(verdict.futile(pairs, how, found))
    assert futile == [False, True]


def test_the_rate_of_the_step_is_whole_while_no_part_is_looked_at() -> None:
    few, many = (Judging(DEFAULTS, decide.InterimLook(pairs, 0.2), 20, by_part=True) for pairs in (3, 5))
    assert few.rate(STEP_TIME) == decide.ERROR_RATE
    assert many.rate(STEP_TIME) + parts.PART_RATE * many.rate_with_part(STEP_TIME) == pytest.approx(decide.ERROR_RATE)
    assert many.rate("host_memory") == decide.ERROR_RATE


def test_waits_are_those_of_as_many_samples() -> None:
    """A head of twice the batch waits twice as long for it: the same for each sample."""
    twice = PairSample(
        number=1,
        base=replace(side(STEP, wait=0.2), loads_itself=True),
        head=replace(side(2 * STEP, samples=8.0, wait=0.2), loads_itself=True),
    )
    seen = twice.waits()
    assert seen.base == pytest.approx(seen.head) == pytest.approx(0.2 * STEP)
    assert seen.share == pytest.approx(0.0, abs=1e-9)
    assert parts.data_part([plain_pair(1, STEP, STEP)]) is None
