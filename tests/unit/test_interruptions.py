"""Evaluations in the midst of epochs: what counts as one, and what lies between two."""

from __future__ import annotations

from bottleneck_doctor.runtime.loop.interruptions import MOST_KEPT, Interruptions


def test_evaluations_are_counted_with_the_batches_between_them() -> None:
    seen = Interruptions()
    for position in (5, 10, 15):
        seen.began(position)
        seen.began(position)  # For each of its batches.
        seen.ended(position / 10, position, position, mid_epoch=True)
    assert seen.told() == {"seen": 3, "by_mode": 0, "batches": 10, "seconds": [0.5, 1.0, 1.5]}


def test_what_is_trained_on_is_no_evaluation() -> None:
    seen = Interruptions()
    for position in range(1, 9):
        seen.began(position)  # A second data set's batch, and the backward pass over both.
        assert seen.ended(0.1, position, position + 1, mid_epoch=True)
    assert seen.told()["seen"] == 0


def test_those_that_only_the_mode_tells_are_counted_beside_the_others() -> None:
    seen = Interruptions()
    for position in range(4):
        seen.began(0)
        assert not seen.ended(1.0, position, 0, mid_epoch=True, by_mode=position < 3)
    assert (seen.told()["seen"], seen.told()["by_mode"]) == (4, 3)
    seen.began(0)
    seen.forget()
    seen.began(1)
    assert not seen.ended(1.0, 5, 1, mid_epoch=True)


def test_what_follows_an_epoch_lies_between_epochs() -> None:
    seen = Interruptions()
    seen.began(3)
    seen.ended(1.0, 10, 3, mid_epoch=False)
    seen.began(4)
    seen.ended(1.0, 15, 4, mid_epoch=True)
    assert seen.told() == {"seen": 1, "by_mode": 0, "batches": 0, "seconds": [1.0]}


def test_only_the_latest_lengths_are_kept() -> None:
    seen = Interruptions()
    for position in range(2 * MOST_KEPT):
        seen.began(0)
        seen.ended(float(position), position, 0, mid_epoch=True)
    told = seen.told()
    assert (told["seen"], told["batches"]) == (2 * MOST_KEPT, 2 * MOST_KEPT - 1)
    assert told["seconds"] == [float(each) for each in range(MOST_KEPT, 2 * MOST_KEPT)]
