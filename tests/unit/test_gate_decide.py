"""What a check may say after so many pairs: how often it is wrong, what it catches, and what it says that it would."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, stdev
from typing import Any

import numpy
import pytest

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.decide import Answer, GateEstimate, InterimLook
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.spread import Spread

ROUNDS = 4


@dataclass(frozen=True)
class Luck:
    """How processes and windows differ, as deviations of logs. `rare`: one draw in ten is five times as far. `bursts`:
    how far a neighbour throws off one window in sixteen, in the mean. `stalls`: by how much the head's own windows are
    longer in one of eight."""

    processes: float
    windows: float
    rare: bool = False
    bursts: float = 0.0
    stalls: float = 0.0

    def pair(self, generator: random.Random, truth: float) -> tuple[float, decide.Own]:
        """The number of one pair, and how far off it may be by its windows."""
        own = generator.gauss(0, self.processes)
        if self.rare and generator.random() < 0.1:
            own *= 5
        windows = [truth + own + generator.gauss(0, self.windows) + self._burst(generator) for _ in range(ROUNDS)]
        mean = sum(windows) / ROUNDS
        variance = sum((each - mean) ** 2 for each in windows) / (ROUNDS - 1) / ROUNDS
        return mean, decide.Own(math.sqrt(variance), ROUNDS - 1)

    def _burst(self, generator: random.Random) -> float:
        if self.stalls:
            return self.stalls if generator.random() < 1 / 8 else 0.0
        if not self.bursts or generator.random() > 1 / 16:
            return 0.0
        return generator.choice((-1, 1)) * generator.expovariate(1 / self.bursts)


@dataclass(frozen=True)
class Ended:
    answer: Answer
    pairs: int
    seen: GateEstimate
    values: list[float]
    look: InterimLook


def simulate(
    luck: Luck, truth: float, threshold: float, most: int, generator: random.Random, lent: Spread | None = None
) -> Ended:
    """One check of at most so many pairs. Logs. `lent`: what earlier checks say."""
    values: list[float] = []
    owns: list[decide.Own] = []
    while True:
        value, own = luck.pair(generator, truth)
        values.append(value)
        owns.append(own)
        look = decide.interim_look_after(len(values), last=len(values) == most)
        if look is None:
            continue
        plain, heavy = decide.estimate(values, owns, lent=lent), decide.weighed(values, owns, lent=lent)
        seen, answer = decide.settle(plain, heavy, threshold, look)
        if answer != "cannot_tell" or len(values) == most:
            return Ended(answer, len(values), seen, values, look)


def share(ends: Sequence[Ended], *answers: Answer) -> float:
    return sum(end.answer in answers for end in ends) / len(ends)


LUCKS = [Luck(0.002, 0.004), Luck(0.007, 0.014), Luck(0.03, 0.05), Luck(0.10, 0.05), Luck(0.02, 0.02, rare=True)]
LUCKS += [Luck(0.005, 0.016, bursts=0.25), Luck(0.03, 0.05, bursts=0.5)]


@pytest.mark.parametrize("luck", LUCKS, ids=str)
@pytest.mark.parametrize("threshold", [0.0, 0.02])
def test_identical_revisions_are_hardly_ever_called_worse(luck: Luck, threshold: float) -> None:
    generator = random.Random(7)
    ends = [simulate(luck, 0.0, threshold, 20, generator) for _ in range(600)]
    assert share(ends, "regression") <= decide.ERROR_RATE


@pytest.mark.parametrize("luck", LUCKS[1:4], ids=str)
def test_a_change_of_the_threshold_itself_is_called_neither_worse_nor_unchanged(luck: Luck) -> None:
    generator = random.Random(8)
    ends = [simulate(luck, 0.02, 0.02, 14, generator) for _ in range(600)]
    assert share(ends, "regression") <= decide.ERROR_RATE
    assert share(ends, "improvement") <= decide.ERROR_RATE
    assert share(ends, "unchanged", "improvement") <= decide.PASSING_RATE


@pytest.mark.parametrize("luck", LUCKS[:3], ids=str)
def test_a_slowdown_of_twice_the_threshold_hardly_ever_passes(luck: Luck) -> None:
    """Unless processes differ by far more than the threshold: then it is as rare as of the threshold itself."""
    generator = random.Random(13)
    ends = [simulate(luck, 0.04, 0.02, 20, generator) for _ in range(600)]
    assert share(ends, "unchanged", "improvement") <= 0.2 * decide.PASSING_RATE


@pytest.mark.parametrize(
    ("change", "threshold", "caught"), [(0.03, 0.015, 0.9), (0.05, 0.025, 0.98), (0.10, 0.05, 1.0), (0.30, 0.15, 1.0)]
)
def test_where_processes_agree_within_a_percent_slowdowns_are_caught(
    change: float, threshold: float, caught: float
) -> None:
    luck = Luck(0.007, 0.012)
    generator = random.Random(9)
    ends = [simulate(luck, math.log1p(change), math.log1p(threshold), 20, generator) for _ in range(300)]
    assert share(ends, "regression") >= caught


def test_where_they_differ_by_three_percent_a_tenth_is_caught() -> None:
    generator = random.Random(10)
    ends = [simulate(Luck(0.025, 0.04), math.log1p(0.10), math.log1p(0.05), 20, generator) for _ in range(300)]
    assert share(ends, "regression") >= 0.95


@dataclass(frozen=True)
class TwoKinds(Luck):
    """Each process is fast or slow for its whole life, by `processes`."""

    def pair(self, generator: random.Random, truth: float) -> tuple[float, decide.Own]:
        base, head = (generator.choice((0.0, self.processes)) + generator.gauss(0, self.windows) for _ in range(2))
        return truth + head - base, decide.Own(1.5 * self.windows, 3)


@pytest.mark.parametrize("gap", [0.03, 0.05, 0.08, 0.11])
def test_processes_of_two_kinds_are_hardly_ever_called_worse(gap: float) -> None:
    """Each is fast or slow for its whole life. All of three pairs fall the same way once in 64 checks."""
    generator = random.Random(14)
    luck, threshold = TwoKinds(gap, 0.001), math.log1p(0.02)
    answers = [simulate(luck, 0.0, threshold, 20, generator).answer for _ in range(1500)]
    assert answers.count("regression") / len(answers) <= decide.ERROR_RATE


def test_many_pairs_are_believed_more_than_the_windows_of_each() -> None:
    """Drift makes the windows of a pair differ and leaves its number alone, for both sides take turns."""
    values = [0.07, 0.13, 0.08, 0.14, 0.06, 0.08, 0.07, 0.06, -0.02, 0.09]
    owns = [decide.Own(0.12, 2)] * 10
    for seen in (decide.estimate(values, owns), decide.weighed(values, owns)):
        # 1.645 is the root of 9 over chi-square's quantile of 5 % with 9 degrees of freedom.
        assert seen.standard_error == pytest.approx(1.645 * stdev(values) / math.sqrt(10), rel=0.01)
    # Three that agree may do so by luck.
    few = decide.estimate(values[:1] * 3, owns[:3])
    assert few.standard_error == pytest.approx(0.12 / math.sqrt(3))


def test_a_regression_is_told_in_one_way_only() -> None:
    """Five pairs that agree, of which two are hardly heard: the plain mean is no second chance beside the weighted."""
    calm, restless = decide.Own(0.002, 3), decide.Own(0.02, 3)
    values, owns = [0.069, 0.071, 0.073, 0.075, 0.077], [calm, calm, restless, restless, restless]
    plain, weighted = decide.estimate(values, owns), decide.weighed(values, owns)
    look = InterimLook(5, 0.25)
    threshold = plain.mean - plain.half_width(decide.ERROR_RATE * look.share) - 1e-4
    assert decide.decide(plain, threshold, look) == "regression"
    assert decide.decide(weighted, threshold, look) == "cannot_tell"
    assert decide.settle(plain, weighted, threshold, look) == (plain, "cannot_tell")
    # Of three none can be spared.
    three = [decide.estimate(values[2:], owns[2:]), decide.weighed(values[2:], owns[2:])]
    assert decide.settle(three[0], three[1], 0.0, InterimLook(3, 1.0))[0] is three[0]


def test_large_slowdowns_and_no_change_are_clear_after_few_pairs() -> None:
    generator = random.Random(11)
    slow = [simulate(Luck(0.004, 0.006), math.log1p(0.3), math.log1p(0.05), 20, generator) for _ in range(200)]
    same = [simulate(Luck(0.007, 0.012), 0.0, math.log1p(0.05), 20, generator) for _ in range(200)]
    assert median(end.pairs for end in slow) <= 3
    assert share(slow, "regression") == 1
    assert median(end.pairs for end in same) <= 3
    assert share(same, "unchanged", "improvement") >= 0.98


@pytest.mark.parametrize("spread", [0.003, 0.01, 0.03, 0.1])
def test_the_smallest_visible_change_is_seen_nine_times_in_ten(spread: float) -> None:
    luck = Luck(0.8 * spread, 1.2 * spread)
    generator = random.Random(12)
    threshold, most = 0.02, 14
    same = [simulate(luck, 0.0, threshold, most, generator) for _ in range(300)]
    told = [decide.smallest(end.seen, threshold, most) for end in same]
    typical = median(each for each in told if each is not None)
    planted = [simulate(luck, typical, threshold, most, generator) for _ in range(400)]
    assert share(planted, "regression") >= 0.87
    # And it promises no more than it must: half of it beyond the threshold is missed as a rule, but for quiet loops,
    # which are believed to differ by a tenth of a percent at least.
    half = [simulate(luck, (typical + threshold) / 2, threshold, most, generator) for _ in range(200)]
    assert share(half, "regression") < 0.7


@pytest.fixture(scope="module")
def chances() -> Any:
    """Student's t of the first n of 30 normal numbers, n from 2: an array of (checks, 29)."""
    numbers = numpy.random.default_rng(16).standard_normal((200_000, decide.most_looked_at()))
    count = numpy.arange(2, decide.most_looked_at() + 1)
    means = numbers.cumsum(1)[:, 1:] / count
    squares = (numbers**2).cumsum(1)[:, 1:]
    return means / numpy.sqrt((squares - count * means**2) / (count - 1) / count)


@pytest.mark.parametrize("rate", [0.025, 0.01, 0.002])
@pytest.mark.parametrize("most", [3, 4, 5, 9, 11, 17, 20, 21, 26, 30])
def test_all_looks_together_are_wrong_as_often_as_promised(chances: Any, most: int, rate: float) -> None:
    wrong: Any = False
    for pairs in range(2, most + 1):
        look = decide.interim_look_after(pairs, last=pairs == most)
        if look is not None and pairs >= decide.LEAST_PAIRS:
            wrong = wrong | (chances[:, pairs - 2] > student_t_quantile(1 - rate * look.share, pairs - 1))
    found = wrong.mean()
    luck = 3 * math.sqrt(rate / len(chances))
    assert found <= rate + luck
    assert found >= 0.75 * rate - luck, "and they waste little of it"


@pytest.fixture(scope="module")
def looked_at() -> Any:
    """Means and standard errors of the first n of 30 normal numbers: two arrays of (checks, 30), n from 1."""
    numbers = numpy.random.default_rng(17).standard_normal((20_000, decide.most_looked_at()))
    count = numpy.arange(1, decide.most_looked_at() + 1)
    means = numbers.cumsum(1) / count
    squares = numpy.maximum((numbers**2).cumsum(1) - count * means**2, 0.0)
    return means, numpy.sqrt(squares / numpy.maximum(count - 1, 1) / count)


@pytest.mark.parametrize("most", [3, 4, 6, 10, 12, 20, 30])
def test_intervals_that_are_shown_hold_what_they_say_wherever_it_stops(looked_at: Any, most: int) -> None:
    """Thresholds and truths as multiples of how much pairs differ."""
    means, errors = looked_at
    for threshold in (0.05, 0.2, 0.7, 2.0):
        for truth in (-0.2, 0.0, 0.5 * threshold, threshold, 1.5 * threshold, 3 * threshold, threshold + 0.5):
            open_, held = numpy.ones(len(means), bool), 0
            for pairs in range(decide.LEAST_PAIRS, most + 1):
                look = decide.interim_look_after(pairs, last=pairs == most)
                if look is None:
                    continue
                off, error = means[:, pairs - 1], errors[:, pairs - 1]
                alarm, passing = (
                    student_t_quantile(1 - rate * look.share, pairs - 1) * error
                    for rate in (decide.ERROR_RATE, decide.PASSING_RATE)
                )
                seen = truth + off
                clear = (seen - alarm > threshold) | (seen + alarm < 0) | (seen + passing < threshold)
                stops = open_ & (clear | (pairs == most))
                low, high = decide.interval(GateEstimate(pairs, 0.0, 1.0), look)
                held += int(((low * error < off) & (off < high * error) & stops).sum())
                open_ &= ~stops
            assert 0.94 - 0.004 <= held / len(means) <= 0.97 + 0.004, (threshold, truth)


@pytest.mark.parametrize("luck", LUCKS, ids=str)
def test_what_is_decided_lies_beyond_the_threshold_with_all_of_its_interval(luck: Luck) -> None:
    generator = random.Random(18)
    for truth, most in ((0.0, 20), (0.05, 12), (0.1, 5)):
        ends = [simulate(luck, truth, 0.03, most, generator) for _ in range(60)]
        for end in ends:
            look = decide.interim_look_after(end.pairs, last=end.pairs == most)
            assert look is not None
            low, high = decide.interval(end.seen, look)
            assert end.answer != "regression" or low > 0.03
            assert end.answer != "improvement" or high < 0
            assert end.answer != "unchanged" or high < 0.03


def test_no_look_is_skipped_and_the_last_one_has_what_is_left() -> None:
    looks = [decide.interim_look_after(pairs, last=False) for pairs in range(1, 31)]
    assert [look.pairs for look in looks if look is not None] == [3, 5, 7, 10, 14, 20, 30]
    last = decide.interim_look_after(17, last=True)
    assert last is not None
    assert last.share == pytest.approx(1 - 0.76)
    assert decide.interim_look_after(40, last=True) == InterimLook(40, decide.INTERIM_LOOKS[-1][1])


def test_a_number_of_pairs_that_was_set_is_looked_at_once() -> None:
    assert decide.interim_look_after(5, last=False, fixed=True) is None
    assert decide.interim_look_after(5, last=True, fixed=True) == InterimLook(5, 1.0)


def test_nothing_is_claimed_of_two_pairs() -> None:
    assert decide.decide(decide.estimate([0.5, 0.5]), 0.05, InterimLook(2, 1.0)) == "cannot_tell"
    with pytest.raises(ValueError, match="one pair"):
        decide.estimate([0.5])


def test_pairs_that_agree_by_luck_are_no_surer_than_their_windows() -> None:
    lucky = decide.estimate([0.1, 0.1, 0.1], [decide.Own(0.03, 3)] * 3)
    assert lucky.standard_error == pytest.approx(0.03 / math.sqrt(3))
    assert decide.estimate([0.1, 0.1, 0.1]).standard_error > 0


def test_a_pair_whose_windows_disagree_is_hardly_heard_and_hardly_counts() -> None:
    calm, restless = decide.Own(0.01, 3), decide.Own(0.5, 3)
    seen = decide.weighed([0.01, 0.012, 0.4], [calm, calm, restless])
    assert seen.mean == pytest.approx(0.011, abs=0.002)
    assert seen.alike == pytest.approx(2, abs=0.02)
    two = decide.weighed([0.01, 0.012], [calm, calm])
    assert two.half_width(0.01) < seen.half_width(0.01) < 2 * two.half_width(0.01)
    assert seen.half_width(0.01) < 0.5 * decide.estimate([0.01, 0.012, 0.4]).half_width(0.01)


def test_a_head_that_stalls_now_and_then_does_not_pass_by_its_calm_pairs() -> None:
    """A sixth slower in all. Nobody can see it in three pairs of which none has met a stall."""
    generator, luck = random.Random(15), Luck(0.005, 0.016, stalls=1.3)
    ends = [simulate(luck, 0.0, 0.05, 20, generator) for _ in range(300)]
    assert share(ends, "unchanged", "improvement") <= (7 / 8) ** (ROUNDS * decide.LEAST_PAIRS)


def test_pairs_weigh_alike_where_nothing_is_known_of_their_windows() -> None:
    assert decide.weighed([0.1, 0.2, 0.6], [None] * 3) == decide.estimate([0.1, 0.2, 0.6])
    assert decide.weighed([0.1, 0.2, 0.6], [decide.Own(0.01, 3), None, None]).mean == pytest.approx(0.3, abs=0.01)


def test_bursts_of_a_neighbour_don_t_hide_a_slowdown() -> None:
    generator, luck = random.Random(14), Luck(0.005, 0.016, bursts=0.25)
    slow = [simulate(luck, math.log1p(0.03), math.log1p(0.015), 20, generator) for _ in range(300)]
    same = [simulate(luck, 0.0, math.log1p(0.02), 20, generator) for _ in range(300)]
    assert share(slow, "regression") >= 0.75
    assert share(same, "regression") == 0


def test_an_interval_holds_the_mean_and_narrows_with_pairs() -> None:
    few = decide.interval(GateEstimate(3, 0.02, 0.01), InterimLook(3, 1.0))
    many = decide.interval(GateEstimate(12, 0.02, 0.01), InterimLook(12, 1.0))
    assert few[0] < many[0] < 0.02 < many[1] < few[1]


def test_there_is_no_smallest_change_without_room_for_a_claim() -> None:
    assert decide.smallest(decide.estimate([0.0, 0.01]), 0.05, 2) is None
