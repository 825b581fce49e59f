"""The period of a loop: the smallest run of steps after which its work repeats."""

from __future__ import annotations

import math
import random

import pytest

from bottleneck_doctor.runtime.loop.period import (
    MINIMUM_STEPS,
    Signature,
    batches_needed,
    find_period,
    find_rhythm,
    goes_by_calls,
    long_gaps,
    repeats_within_epochs,
)

STEP: Signature = (("backward", 1), ("optimizer", 0))
HALF: Signature = (("backward", 1),)
OTHER: Signature = (("backward", 1), ("optimizer", 1))


@pytest.mark.parametrize(
    ("signatures", "needed"),
    [
        ([], MINIMUM_STEPS),
        ([STEP] * 4, MINIMUM_STEPS),
        ([STEP * 2] * 4, 3),
        ([STEP * 4] * 4, 3),  # Three are asked for in any case.
        ([STEP * 2, STEP * 2, STEP], MINIMUM_STEPS),
        ([STEP, STEP * 2, STEP * 2, STEP * 2], 3),
        ([OTHER + STEP] * 4, MINIMUM_STEPS),  # Of two networks, one may rest in the next batch.
        ([HALF * 4] * 4, MINIMUM_STEPS),
    ],
)
def test_fewer_batches_show_a_period_where_an_optimizer_steps_several_times_with_each(
    signatures: list[Signature], needed: int
) -> None:
    assert batches_needed(signatures, "optimizer") == needed


def test_three_batches_of_several_steps_show_a_period() -> None:
    assert find_period([HALF, STEP * 4, STEP * 4, STEP * 4], at_least=3) == 1
    assert find_period([STEP * 4, STEP * 4, STEP * 3], at_least=3) is None
    assert find_period([STEP * 4] * 3) is None


@pytest.mark.parametrize(
    ("cycle", "period"),
    [
        ([STEP], 1),
        ([HALF, STEP], 2),
        ([HALF, HALF, HALF, STEP], 4),
        ([OTHER, STEP], 2),
        ([STEP, STEP, OTHER], 3),
        ([HALF] * 5 + [STEP], 6),
    ],
)
def test_period_of_a_cycle_wherever_it_was_entered(cycle: list[Signature], period: int) -> None:
    for start in range(len(cycle)):
        seen = (cycle * 30)[start : start + max(3 * len(cycle), MINIMUM_STEPS)]
        assert find_period(seen) == period


def test_warm_up_that_is_unlike_the_rest_does_not_matter() -> None:
    assert find_period([HALF, HALF, STEP, OTHER, OTHER] + [HALF, STEP] * 4) == 2


@pytest.mark.parametrize("count", range(MINIMUM_STEPS))
def test_few_steps_say_nothing(count: int) -> None:
    assert find_period([STEP] * count) is None


def test_a_cycle_must_be_seen_three_times() -> None:
    cycle = [HALF, HALF, HALF, STEP]
    assert find_period((cycle * 3)[:-1]) is None
    assert find_period(cycle * 3) == 4


def test_no_period() -> None:
    # A step after the 1st, 2nd, 4th, 8th … batch: gaps that never repeat.
    assert find_period([STEP if number & (number - 1) == 0 else HALF for number in range(1, 20)]) is None
    assert find_period([]) is None


def ahead(*lengths: int, step: Signature = STEP) -> list[list[Signature]]:
    """Epochs of so many batches, in a loop that asks for one ahead."""
    epochs: list[list[Signature]] = []
    for length in lengths:
        left = step * 2 if epochs else ()
        epochs.append([left, (), *[step] * (length - 2)])
    return epochs


def test_short_epochs_that_are_fetched_ahead_repeat_from_batch_to_batch() -> None:
    assert not repeats_within_epochs([])
    assert not repeats_within_epochs(ahead(5))
    assert not repeats_within_epochs(ahead(5, 4))
    assert repeats_within_epochs(ahead(5, 5))
    assert repeats_within_epochs(ahead(5, 4, 3)), "the last one is not over"
    assert not repeats_within_epochs(ahead(20)), "one epoch shows nothing of its end"


def test_what_differs_from_batch_to_batch_does_not_repeat_within_epochs() -> None:
    accumulated = ahead(6, 6)
    accumulated[1][3] = HALF
    assert not repeats_within_epochs(accumulated)
    assert not repeats_within_epochs(ahead(8, 8, step=())), "nothing is trained"
    more = ahead(6, 6)
    more[1][0] = STEP * 3
    assert not repeats_within_epochs(more), "an epoch has more steps than batches"


def test_longest_period_looked_for() -> None:
    cycle = [HALF, STEP, STEP, HALF, HALF, STEP, OTHER, HALF, OTHER, OTHER]
    assert find_period(cycle * 5, longest=9) is None
    assert find_period(cycle * 5, longest=10) == 10


# -- a rhythm in time, of steps that are all alike ---------------------------------------------------------------------


def rollouts(steps: int, *, rollout: float, count: int = 4, step: float = 0.003, seed: int = 0) -> list[float]:
    """Gaps between optimizer steps: `steps` of `step` seconds or a little more, with a rollout before the first."""
    luck = random.Random(seed)
    gaps = [step * luck.uniform(1, 1.5) + (rollout * luck.uniform(1, 1.2)) * (n % steps == 0) for n in range(1, 1000)]
    return gaps[: count * steps]


@pytest.mark.parametrize("steps", [4, 16, 40, 128, 200])
@pytest.mark.parametrize("rollout", [0.05, 2.0])
def test_rollouts_come_after_every_so_many_steps(steps: int, rollout: float) -> None:
    for seed in range(5):
        gaps = rollouts(steps, rollout=max(rollout, 0.2 * steps * 0.003), seed=seed, count=max(4, 36 // steps))
        assert find_rhythm(gaps) == steps
        assert find_rhythm(gaps[: 2 * steps]) is None, "a rhythm must be seen three times over"


def test_a_rhythm_is_seen_through_stalls_and_a_warm_up() -> None:
    gaps = rollouts(16, rollout=0.3, count=5)
    for place in (20, 41, 77):
        gaps[place] += 0.03
    assert find_rhythm([9.0, 4.0, *gaps]) == 16


def test_what_has_no_rhythm() -> None:
    luck = random.Random(1)
    alike = [0.01 * luck.uniform(0.8, 1.6) for _ in range(200)]
    assert (find_rhythm(alike), long_gaps(alike)) == (None, 0)
    stalls = [gap + 0.05 * (luck.random() < 0.03) for gap in alike]
    assert find_rhythm(stalls) is None
    by_chance = 0
    for seed in range(300):
        luck = random.Random(seed)
        gaps = [luck.choice([0.001] * 6 + [0.05, 0.08]) * luck.uniform(1, 1.5) for _ in range(40)]
        by_chance += any(find_rhythm(gaps[:end]) for end in range(12, 41))
    assert by_chance <= 3
    # Episodes whose lengths differ.
    episodes = [0.3 if place in (3, 9, 30, 38, 60, 61, 90, 99) else 0.01 for place in range(100)]
    assert find_rhythm(episodes) is None
    assert long_gaps(episodes) == 8
    assert (find_rhythm([]), long_gaps([])) == (None, 0)
    assert long_gaps([9.0, 5.0, *alike]) == 0, "a warm-up is no work of another kind"


def test_steps_may_take_as_long_as_they_have_calls_of_the_model() -> None:
    chance = random.Random(3)
    calls = [chance.randrange(8, 60) for _ in range(11)]
    noise = [math.exp(chance.gauss(0.0, 0.1)) for _ in calls]
    episodes = [(0.002 + 0.001 * count) * off for count, off in zip(calls, noise, strict=True)]
    assert goes_by_calls(episodes, calls)
    assert goes_by_calls([9.0, 5.0, *episodes], [1, 2, *calls]), "the first steps may hold what is done once"
    alike = [0.03 * off for off in noise]
    assert not goes_by_calls(alike, calls), "they take equally long, however often it is called"
    assert not goes_by_calls([0.05 + 0.0001 * count for count in calls], calls), "most of the work is another"
    assert not goes_by_calls(episodes, [1] * len(calls))
    assert not goes_by_calls(episodes, [0] * len(calls)), "nobody counts"
    assert not goes_by_calls(episodes[:7], calls[:7]), "too few"
    rollouts = [20, *[1] * 15] * 3
    assert not goes_by_calls([0.005 + 0.01 * count for count in rollouts], rollouts), "a rhythm is another thing"
    disturbed = [gap * (8 if place in (4, 9) else 1) for place, gap in enumerate(alike)]
    assert not goes_by_calls(disturbed, calls)
