"""The period of a loop: the smallest run of steps after which its work repeats."""

from __future__ import annotations

import pytest

from bottleneck_doctor.runtime.steps import MINIMUM_STEPS, Signature, batch_samples, find_period

STEP: Signature = (("backward", 1), ("optimizer", 0))
HALF: Signature = (("backward", 1),)
OTHER: Signature = (("backward", 1), ("optimizer", 1))


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


def test_longest_period_looked_for() -> None:
    cycle = [HALF, STEP, STEP, HALF, HALF, STEP, OTHER, HALF, OTHER, OTHER]
    assert find_period(cycle * 5, longest=9) is None
    assert find_period(cycle * 5, longest=10) == 10


def test_samples_of_a_batch_are_its_first_dimension() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.zeros(7, 3)
    for batch in (
        rows,
        (rows, torch.zeros(2)),
        [rows],
        {"input_ids": rows, "labels": torch.zeros(1)},
        [[rows, rows], rows],
        ["a", "b", "c", "d", "e", "f", "g"],
    ):
        assert batch_samples(batch) == 7, batch
    assert batch_samples(torch.tensor(3.0)) == 1
    assert batch_samples(object()) == 1
    assert batch_samples([]) == 1


def test_a_list_of_pictures_counts_its_pictures() -> None:
    torch = pytest.importorskip("torch")
    pictures = [torch.zeros(3, 20 + i, 30) for i in range(4)]
    assert batch_samples((pictures, [{"boxes": torch.zeros(2, 4)}] * 4), 4) == 4
    views = [torch.zeros(8, 3), torch.zeros(8, 3)]
    assert batch_samples((views, torch.zeros(8)), 8) == 8


def test_the_part_that_is_as_long_as_the_batch_says_is_believed() -> None:
    torch = pytest.importorskip("torch")
    boxes_first = {"boxes": torch.zeros(9, 4), "names": ("a",) * 4, "pictures": torch.zeros(4, 3, 8, 8)}
    assert batch_samples(boxes_first, 4) == 4
    assert batch_samples((torch.zeros(50, 4, 3), torch.zeros(4)), 4) == 4  # Time before batch.
    assert batch_samples(boxes_first, 5) == batch_samples(boxes_first) == 9
    assert batch_samples([[["name", torch.zeros(6, 2)]]]) == 6
    assert batch_samples([[[[torch.zeros(3)] * 1000] * 1000] * 1000] * 1000, 4) == 3
