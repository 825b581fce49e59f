"""What may be said of processes now against stored times: how often it is wrong, and what it sees."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import pytest

from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.baseline import against
from bottleneck_doctor.gate.baseline.against import Against
from bottleneck_doctor.gate.decide import Answer
from bottleneck_doctor.statistics import speedups

ASSUMED = 0.15


@dataclass(frozen=True)
class Luck:
    """How times and processes differ, as deviations of logs. `rare`: one time in ten is five times as far."""

    times: float
    processes: float
    rare: bool = False

    def time(self, generator: random.Random, count: int, truth: float = 0.0) -> list[float]:
        own = generator.gauss(0, self.times) * (5 if self.rare and generator.random() < 0.1 else 1)
        return [truth + own + generator.gauss(0, self.processes) for _ in range(count)]


@dataclass(frozen=True)
class Ended:
    answer: Answer
    processes: int
    seen: Against


def simulate(
    luck: Luck, times: int, each: int, generator: random.Random, *, truth: float = 0.0, threshold: float = 0.0
) -> Ended:
    """A baseline and one check against it. Logs."""
    stored = [luck.time(generator, each) for _ in range(times)]
    most = against.wanted([each] * times)
    head = luck.time(generator, most, truth)
    for count in range(2, most + 1):
        look = against.interim_look_after(count, times, last=count == most)
        if look is None:
            continue
        seen = against.estimate(head[:count], stored, 0.0, ASSUMED)
        answer = decide.decide(seen, threshold, look)
        if answer != "cannot_tell" or count == most:
            return Ended(answer, count, seen)
    raise AssertionError("it was never looked")


def share(ends: Sequence[Ended], *answers: Answer) -> float:
    return sum(end.answer in answers for end in ends) / len(ends)


LUCKS = [Luck(0.0, 0.02), Luck(0.003, 0.02), Luck(0.02, 0.02), Luck(0.06, 0.01)]


@pytest.mark.parametrize("luck", LUCKS, ids=str)
@pytest.mark.parametrize("times", [1, 2, 3, 4, 6, 12])
def test_the_same_training_is_hardly_ever_called_worse(luck: Luck, times: int) -> None:
    """Luck of times is met by as few as three of them; with fewer it is supposed, and these stay within it."""
    generator = random.Random(7)
    ends = [simulate(luck, times, 5, generator) for _ in range(400)]
    # The promise, and what 400 simulations of it may show by luck: three in a hundred show more.
    assert share(ends, "regression") <= decide.ERROR_RATE + 2 * math.sqrt(decide.ERROR_RATE / 400)


def test_all_false_alarms_together_keep_the_promise() -> None:
    generator = random.Random(8)
    ends = [
        simulate(luck, times, each, generator)
        for times in (3, 4, 5, 6, 8, 15)
        for each in (3, 8)
        for luck in LUCKS
        for _ in range(50)
    ]
    assert share(ends, "regression") <= decide.ERROR_RATE


def test_processes_taken_for_draws_of_luck_would_cry_wolf() -> None:
    """Why a time counts once: with the processes of all times as units, what differs between times is called worse."""
    luck, generator = Luck(0.02, 0.005), random.Random(9)
    alarms = 0
    for _ in range(200):
        stored = [each for _ in range(4) for each in luck.time(generator, 8)]
        head = luck.time(generator, 8)
        seen = speedups.difference(head, stored, level=1 - 2 * decide.ERROR_RATE)
        assert seen is not None
        alarms += seen[0] > seen[1]
    assert alarms / 200 > 5 * decide.ERROR_RATE


@pytest.mark.parametrize(
    ("times", "change", "caught"), [(4, 0.25, 0.98), (6, 0.15, 0.95), (12, 0.12, 0.90), (12, 0.15, 0.99)]
)
def test_slowdowns_are_caught_where_times_agree_within_a_percent(times: int, change: float, caught: float) -> None:
    generator = random.Random(10)
    truth, threshold = math.log1p(change), math.log1p(0.05)
    ends = [simulate(Luck(0.01, 0.01), times, 8, generator, truth=truth, threshold=threshold) for _ in range(300)]
    assert share(ends, "regression") >= caught
    same = [simulate(Luck(0.01, 0.01), times, 8, generator, threshold=threshold) for _ in range(300)]
    assert share(same, "regression") <= decide.ERROR_RATE


@pytest.mark.parametrize("times", [3, 6, 12])
@pytest.mark.parametrize("luck", [Luck(0.01, 0.01), Luck(0.002, 0.03)], ids=str)
def test_the_smallest_visible_change_is_seen_nine_times_in_ten(luck: Luck, times: int) -> None:
    generator = random.Random(11)
    threshold, most = 0.05, against.wanted([5] * times)
    ends = [simulate(luck, times, 5, generator, threshold=threshold) for _ in range(300)]
    fixed = against.looked_at_once(times)
    told = [against.smallest(end.seen, threshold, most, fixed=fixed) for end in ends]
    typical = median(each for each in told if each is not None)
    planted = [simulate(luck, times, 5, generator, truth=typical, threshold=threshold) for _ in range(300)]
    assert share(planted, "regression") >= 0.85


def test_more_times_show_smaller_changes_and_more_processes_do_not() -> None:
    generator = random.Random(12)

    def typical(times: int, each: int) -> float:
        ends = [simulate(Luck(0.02, 0.01), times, each, generator) for _ in range(100)]
        fixed, most = against.looked_at_once(times), against.wanted([each] * times)
        return median(against.smallest(end.seen, 0.0, most, fixed=fixed) or math.inf for end in ends)

    assert typical(3, 5) > 1.5 * typical(5, 5) > 1.5 * typical(12, 5)
    assert typical(5, 20) > 0.75 * typical(5, 5)


def test_few_times_are_supposed_to_differ() -> None:
    one = against.estimate([0.0] * 5, [[0.0] * 5], 0.0, ASSUMED)
    assert one.half_width(0.01) == pytest.approx(2.33 * math.sqrt(2) * ASSUMED, rel=0.01)
    # Two that differ by more are believed.
    two = against.estimate([0.0] * 5, [[0.0] * 5, [1.0] * 5], 0.0, ASSUMED)
    assert two.between == pytest.approx(0.5)


def test_two_times_that_differ_more_than_is_supposed_are_two_draws() -> None:
    """What was supposed is refuted, and what one difference says of the next has one degree of freedom."""
    seen = against.estimate([0.0] * 5, [[0.0] * 5, [1.0] * 5], 0.0, 0.15)
    assert seen.freedom(5) == 1
    assert seen.half_width(0.01) == pytest.approx(31.82 * math.sqrt(0.75), rel=1e-3)
    alike = against.estimate([0.0] * 5, [[0.0] * 5, [0.1] * 5], 0.0, 0.15)
    assert alike.freedom(5) > 1000


def test_times_that_agree_by_luck_are_no_surer_than_their_processes() -> None:
    times = [[-0.05, 0.05]] * 4
    seen = against.estimate([-0.05, 0.05], times, 0.0, ASSUMED)
    assert seen.between == pytest.approx(seen.inside / 2)
    windows = against.estimate([0.1, 0.1], [[0.1, 0.1]] * 4, 0.03, ASSUMED)
    assert windows.inside == pytest.approx(0.03**2)
    assert against.estimate([0.1, 0.1], [[0.1, 0.1]] * 4, 0.0, ASSUMED).standard_error > 0


def test_a_head_of_fewer_processes_is_less_sure() -> None:
    generator = random.Random(13)
    times = [[generator.gauss(0, 0.02) for _ in range(8)] for _ in range(5)]
    seen = against.estimate(times[0][:3], times, 0.0, ASSUMED)
    assert seen.error(3) > seen.error(5) > seen.error(8) == seen.error(20)
    assert seen.standard_error == seen.error(3)
    assert 4 <= seen.freedom(8) <= seen.freedom(3)


def test_what_the_head_gets() -> None:
    assert against.wanted([8, 8, 8]) == 8
    assert against.wanted([3]) == against.LEAST_PROCESSES
    assert against.wanted([100]) == decide.most_looked_at()
    assert against.interim_look_after(3, 3, last=False) is None
    assert against.interim_look_after(5, 3, last=True) == decide.InterimLook(5, 1.0)
    assert against.interim_look_after(3, 6, last=False) == decide.InterimLook(3, 0.20)


def test_nothing_is_said_of_one_process_or_of_no_time() -> None:
    for head, times in (([0.1], [[0.1]]), ([0.1, 0.2], [])):
        with pytest.raises(ValueError, match="one process"):
            against.estimate(head, times, 0.0, ASSUMED)
