"""What may be said of an edit: how often one that changes nothing is called faster or slower, and when it is enough."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
from tests.unit.test_gate_decide import LUCKS, Luck, looked_at

from bottleneck_doctor.gate import decide, faster
from bottleneck_doctor.gate.decide import Answer, GateEstimate, InterimLook
from bottleneck_doctor.gate.tried import THRESHOLD
from bottleneck_doctor.statistics.distributions import student_t_quantile

__all__ = ["looked_at"]  # A fixture.


@dataclass(frozen=True)
class Ended:
    answer: Answer
    pairs: int
    seen: GateEstimate
    look: InterimLook
    given_up: bool = False


def simulate(
    luck: Luck, truth: float, threshold: float, most: int, generator: random.Random, *, gives_up: bool = False
) -> Ended:
    """One edit that is worth so much, with at most so many pairs. Logs of the time of a step."""
    values: list[float] = []
    owns: list[decide.Own] = []
    while True:
        value, own = luck.pair(generator, truth)
        values.append(value)
        owns.append(own)
        last = len(values) == most
        look = decide.interim_look_after(len(values), last=last)
        if look is None:
            continue
        plain, weighted = decide.estimate(values, owns), decide.weighed(values, owns)
        seen, answer = faster.settle(plain, weighted, threshold, look)
        if last or answer == "unchanged" or is_enough(seen, answer, look):
            return Ended(answer, len(values), seen, look)
        known = faster.futility(plain, threshold, most, weighted=weighted)
        if gives_up and answer == "cannot_tell" and known is not None and known.futile:
            return Ended(answer, len(values), seen, look, given_up=True)


def is_enough(seen: GateEstimate, answer: Answer, look: InterimLook) -> bool:
    low, high = decide.interval(seen, look)
    return answer in ("improvement", "regression") and faster.known_well(seen.mean, low, high)


def share(ends: Sequence[Ended], *answers: Answer) -> float:
    return sum(end.answer in answers for end in ends) / len(ends)


STALLS = Luck(0.005, 0.016, stalls=1.3)


@pytest.mark.parametrize("luck", LUCKS, ids=str)
@pytest.mark.parametrize("threshold", [0.01, THRESHOLD])
def test_an_edit_that_changes_nothing_is_hardly_ever_called_faster_or_slower(luck: Luck, threshold: float) -> None:
    generator = random.Random(7)
    ends = [simulate(luck, 0.0, threshold, 20, generator) for _ in range(600)]
    assert share(ends, "improvement", "regression") <= decide.ERROR_RATE


@pytest.mark.parametrize("gap", [0.03, 0.05, 0.08, 0.11])
def test_processes_of_two_kinds_are_no_difference(gap: float) -> None:
    """Each is fast or slow for its whole life. All of three pairs fall the same way once in 64 times, either way."""
    generator = random.Random(14)
    answers = []
    for _ in range(1000):
        values, owns, answer = [], [], "cannot_tell"
        for number in range(1, 21):
            base, head = (generator.choice((0.0, gap)) + generator.gauss(0, 0.001) for _ in range(2))
            values.append(head - base)
            owns.append(decide.Own(0.0015, 3))
            look = decide.interim_look_after(number, last=number == 20)
            if look is not None:
                plain, weighted = decide.estimate(values, owns), decide.weighed(values, owns)
                seen, answer = faster.settle(plain, weighted, THRESHOLD, look)
                if answer == "unchanged" or is_enough(seen, answer, look):
                    break
        answers.append(answer)
    assert sum(answer in ("improvement", "regression") for answer in answers) / len(answers) <= decide.ERROR_RATE


@dataclass
class Shares:
    """Of many edits that are worth the same: how often the interval held that, and what was said."""

    held: float = 0.0
    faster: float = 0.0
    slower: float = 0.0
    neither: float = 0.0


def shares(looked_at: Any, spread: float, threshold: float, truth: float, most: int) -> Shares:
    means, errors = looked_at
    found, open_ = Shares(), numpy.ones(len(means), bool)
    for pairs in range(decide.LEAST_PAIRS, most + 1):
        look = decide.interim_look_after(pairs, last=pairs == most)
        if look is None:
            continue
        mean, error = truth + spread * means[:, pairs - 1], spread * errors[:, pairs - 1]
        claim, passing = (
            student_t_quantile(1 - rate * look.share, pairs - 1) * error
            for rate in (decide.ERROR_RATE / 2, decide.PASSING_RATE)
        )
        neither = abs(mean) + passing < threshold
        slower = (mean - claim > faster.bar(pairs)) & ~neither
        quicker = (mean + claim < -faster.bar(pairs)) & ~neither
        half = decide.interval(GateEstimate(pairs, 0.0, 1.0), look)[1] * error
        near = abs(mean) - half
        soon = (mean < 0) & (numpy.exp(-near) - numpy.exp(mean) <= faster.TIME_LEFT)
        enough = (near >= faster.LEAST_KEPT * abs(mean)) & ((half <= -math.log(faster.LEAST_PART)) | soon)
        stops = open_ & (neither | ((slower | quicker) & enough) | (pairs == most))
        for name, is_so in (("held", abs(mean - truth) < half), ("neither", neither), ("slower", slower)):
            setattr(found, name, getattr(found, name) + (is_so & stops).mean())
        found.faster += (quicker & stops).mean()
        open_ &= ~stops
    return found


@pytest.mark.parametrize("most", [3, 4, 6, 10, 12, 20, 30])
def test_the_promise_holds_wherever_it_stops_and_so_do_intervals(looked_at: Any, most: int) -> None:
    for spread in (0.007, 0.02, 0.05, 0.1):
        nothing = shares(looked_at, spread, THRESHOLD, 0.0, most)
        assert nothing.faster + nothing.slower <= decide.ERROR_RATE, spread
        for truth in (0.0, -0.01, -0.02, -0.05, -0.15, -0.4, -3.0, 0.05, 0.2):
            found = shares(looked_at, spread, THRESHOLD, truth, most)
            assert 0.94 - 0.004 <= found.held <= 0.99, (spread, truth)
            assert (found.slower if truth < 0 else found.faster) <= decide.ERROR_RATE / 2, (spread, truth)


def test_what_is_beyond_the_threshold_is_hardly_ever_called_no_difference(looked_at: Any) -> None:
    for spread in (0.007, 0.02, 0.05):
        for truth in (-THRESHOLD, THRESHOLD, 2 * THRESHOLD):
            assert shares(looked_at, spread, THRESHOLD, truth, 20).neither <= decide.PASSING_RATE, (spread, truth)


@pytest.mark.parametrize(("gain", "pairs"), [(1.05, 7), (1.1, 7), (1.3, 5), (2.0, 3)])
def test_where_processes_agree_within_a_percent_speedups_are_found_soon(gain: float, pairs: int) -> None:
    generator = random.Random(9)
    ends = [simulate(Luck(0.007, 0.012), -math.log(gain), THRESHOLD, 20, generator) for _ in range(200)]
    assert share(ends, "improvement") >= 0.97
    assert sorted(end.pairs for end in ends)[len(ends) // 2] <= pairs


def test_measuring_ends_with_an_interval_to_act_on() -> None:
    """Unless the time is over: certainty alone is reached with less."""
    generator = random.Random(11)
    gain = math.log(1.3)
    ends = [simulate(Luck(0.03, 0.05), -gain, THRESHOLD, 30, generator) for _ in range(200)]
    for end in ends:
        assert end.answer == "improvement"
        low, high = decide.interval(end.seen, end.look)
        if end.pairs < 30:
            assert -high >= faster.LEAST_KEPT * -end.seen.mean
            assert math.exp(-high + end.seen.mean) >= faster.LEAST_PART - 1e-9
        assert high < 0
        assert low < end.seen.mean


def test_an_edit_that_stalls_now_and_then_is_not_called_faster_by_its_calm_pairs() -> None:
    """A sixth slower in all, and a twentieth faster between two stalls."""
    generator = random.Random(15)
    ends = [simulate(STALLS, -0.05, THRESHOLD, 20, generator) for _ in range(300)]
    # Nobody can see it in three pairs of which none has met a stall.
    assert share(ends, "improvement", "unchanged") <= (7 / 8) ** (4 * decide.LEAST_PAIRS)


def test_few_pairs_have_to_show_more() -> None:
    three = GateEstimate(3, -0.1, 0.0002)
    five = GateEstimate(5, -0.1, 0.0002)
    look = InterimLook(3, 1.0)
    assert faster.settle(three, three, THRESHOLD, look)[1] == "cannot_tell"
    assert faster.settle(five, five, THRESHOLD, InterimLook(5, 1.0))[1] == "improvement"
    assert faster.settle(GateEstimate(3, -0.2, 0.0002), three, THRESHOLD, look)[1] == "improvement"
    assert faster.settle(GateEstimate(2, -0.2, 0.0002), three, THRESHOLD, look)[1] == "cannot_tell"


def test_two_pairs_are_enough_for_what_is_far_away() -> None:
    def answer(ratio: float, other: float) -> str:
        seen = decide.estimate([math.log(ratio), math.log(other)])
        return faster.settle(seen, seen, THRESHOLD, InterimLook(2, 1.0))[1]

    # In 5 minutes, a program that takes 50 s to start had shown 3.2 times in both pairs.
    assert answer(1 / 3.2, 1 / 3.18) == "improvement"
    assert answer(3.2, 3.18) == "regression"
    assert answer(1 / 3.2, 1 / 2.2) == "cannot_tell"
    assert answer(1 / 1.5, 1 / 1.5) == "cannot_tell"


def test_luck_of_two_pairs_makes_no_claim() -> None:
    generator = random.Random(23)
    claimed = 0
    for _ in range(20_000):
        # Processes that differ by a quarter, and one pair in ten beside something that doubles what it takes.
        pair = [generator.gauss(0.0, 0.25) + (generator.random() < 0.1) * math.log(2.0) for _ in range(2)]
        seen = decide.estimate(pair)
        claimed += faster.settle(seen, seen, THRESHOLD, InterimLook(2, 1.0))[1] != "cannot_tell"
    assert claimed <= 20_000 * 0.003


def test_what_lies_within_the_threshold_is_no_difference_however_sure_it_is() -> None:
    sure = GateEstimate(7, -0.01, 0.0003)
    assert faster.settle(sure, sure, 0.02, InterimLook(7, 1.0))[1] == "unchanged"
    assert faster.settle(sure, sure, 0.005, InterimLook(7, 1.0))[1] == "improvement"


def test_how_narrow_an_interval_has_to_be() -> None:
    assert faster.known_well(-0.3, -0.39, -0.21)
    assert not faster.known_well(-0.3, -0.45, -0.15), "a tenth less than the estimate is the most"
    assert faster.known_well(-0.04, -0.059, -0.021)
    assert not faster.known_well(-0.04, -0.061, -0.019), "half of the gain has to be sure"
    assert faster.known_well(0.04, 0.021, 0.059)
    nine = -math.log(9.0)
    assert faster.known_well(nine, -math.log(13.0), -math.log(6.3)), "11 % of the time is left, or 16 %"
    assert not faster.known_well(nine, -math.log(15.0), -math.log(5.5)), "or 18 %"
    assert not faster.known_well(-math.log(1.8), -math.log(2.1), -math.log(1.6)), "below two times, a tenth is the most"
    a_hundred = -math.log(100)
    assert faster.known_well(a_hundred, a_hundred - 1, a_hundred + 1), "1 % of the time is left, or 2.7 %"
    assert not faster.known_well(a_hundred, a_hundred - 2.5, a_hundred + 2.5), "half of the gain has to be sure"
    assert not faster.known_well(-a_hundred, -a_hundred - 1, -a_hundred + 1), "a loss of a hundred times may be 37"


@pytest.mark.parametrize("most", [6, 14, 30])
def test_what_no_pair_can_tell_is_given_up(most: int) -> None:
    generator = random.Random(1)
    ends = [simulate(Luck(0.11, 0.10), 0.0, THRESHOLD, most, generator, gives_up=True) for _ in range(150)]
    assert sum(end.given_up for end in ends) >= 0.7 * len(ends)
    large = [simulate(Luck(0.11, 0.10), -math.log(1.5), THRESHOLD, most, generator, gives_up=True) for _ in range(150)]
    assert sum(end.given_up for end in large) <= 0.03 * len(large)


@pytest.mark.parametrize("truth", [0.0, -0.05])
def test_what_can_be_told_is_hardly_ever_given_up(truth: float) -> None:
    generator = random.Random(3)
    ends = [simulate(Luck(0.007, 0.012), truth, THRESHOLD, 14, generator, gives_up=True) for _ in range(200)]
    assert sum(end.given_up for end in ends) <= 0.02 * len(ends)


@pytest.mark.parametrize("spread", [0.01, 0.03])
def test_the_smallest_detectable_change_is_found_nine_times_in_ten(spread: float) -> None:
    luck = Luck(0.8 * spread, 1.2 * spread)
    generator = random.Random(12)
    most = 14
    same = [simulate(luck, 0.0, THRESHOLD, most, generator) for _ in range(200)]
    told = sorted(each for end in same if (each := faster.smallest(end.seen, THRESHOLD, most)) is not None)
    typical = told[len(told) // 2]
    planted = [simulate(luck, -typical, THRESHOLD, most, generator) for _ in range(300)]
    assert share(planted, "improvement") >= 0.87
