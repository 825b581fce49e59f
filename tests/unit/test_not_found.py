"""What is said where no training loop was found: what was seen, and no more budget where that would not help."""

from __future__ import annotations

import pytest

from bottleneck_doctor.errors import Exit
from bottleneck_doctor.examine import no_result
from bottleneck_doctor.runtime.wire.messages import Ended
from bottleneck_doctor.runtime.wire.seen import Counts
from bottleneck_doctor.session.failure import Frame, Stack, whereabouts


@pytest.mark.parametrize(
    ("seen", "slug", "told"),
    [
        (None, "out-of-time", "imported torch"),
        (Counts(), "out-of-time", "no batch from a DataLoader"),
        (Counts(batches=3, backwards=3, optimizer_steps=3), "out-of-time", "3 loader batches"),
        (Counts(evaluated=40), "out-of-time", "40 loader batches, all of them with gradients off"),
        (Counts(batches=2, evaluated=40), "out-of-time", "42 loader batches, 40 of them with gradients off"),
        (Counts(backwards=160, optimizer_steps=8), "out-of-time", "8 optimizer steps"),
        (Counts(batches=1, backwards=445, optimizer_steps=445), "out-of-time", "recognised no loop in them"),
        (Counts(backwards=5000), "no-training-loop", "5000 backward passes"),
        (Counts(batches=1, backwards=1, optimizer_steps=1), "out-of-time", "1 loader batch, 1 backward pass, 1 opti"),
    ],
)
def test_time_that_ends_before_a_loop_is_found(seen: Counts | None, slug: str, told: str) -> None:
    error = no_result.not_found(60, seen)
    assert error.slug == slug
    assert error.exit_code == (Exit.OUT_OF_TIME if slug == "out-of-time" else Exit.NO_TRAINING)
    assert told in str(error)
    assert "60 s" in str(error)
    assert ("--budget" in error.next_step) == (slug == "out-of-time")


def test_more_budget_is_never_all_that_a_script_without_training_is_told() -> None:
    for seen in (None, Counts(), Counts(evaluated=40), Counts(batches=900)):
        assert "give the script that trains" in no_result.not_found(60, seen).next_step


def test_it_is_said_where_the_script_was() -> None:
    """As in programs that evaluate for minutes before their first step."""
    frames = [
        Frame("forward", "/lib/torch/linear.py", 9, own=False),
        Frame("forward", "/home/ada/gpt.py", 84, own=True),
        Frame("estimate_loss", "/home/ada/gpt.py", 56, own=True),
        Frame("<module>", "/home/ada/gpt.py", 203, own=True),
    ]
    where = whereabouts([Stack(frames)])
    assert where == "It was in `estimate_loss` (gpt.py:56), called at gpt.py:203."
    error = no_result.not_found(600, Counts(), where)
    assert where in error.sentence
    assert "let it do less of it" in error.next_step
    assert "--budget 30m" in error.next_step
    assert whereabouts([Stack(frames[3:])]) == "It was at gpt.py:203."
    assert whereabouts([Stack(frames[:1])]) == whereabouts([]) == ""
    trained = no_result.not_found(60, Counts(batches=3, backwards=3, optimizer_steps=3), where)
    assert where in trained.sentence
    assert "less of it" not in trained.next_step


@pytest.mark.parametrize(
    ("ended", "slug"),
    [
        (Ended(batches=0, optimizer_steps=0, backwards=0, served=False, evaluated=7), "no-training-loop"),
        (Ended(batches=0, optimizer_steps=0, backwards=5000, served=False), "no-training-loop"),
        (Ended(batches=0, optimizer_steps=8, backwards=160, served=False), "too-few-steps"),
        (Ended(batches=5, optimizer_steps=5, backwards=5, served=False), "too-few-steps"),
        (Ended(batches=900, optimizer_steps=0, backwards=900, served=True), "too-few-steps"),
    ],
)
def test_script_that_ends_before_a_loop_is_found(ended: Ended, slug: str) -> None:
    assert no_result.no_training(ended, "").slug == slug
