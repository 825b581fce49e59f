"""When a model is put into evaluation mode and back, and when that is a part of its steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from torch import nn

from bottleneck_doctor.runtime.loop import evaluation_mode
from bottleneck_doctor.runtime.loop.evaluation_mode import RARE, EvaluationMode
from bottleneck_doctor.runtime.loop.steps import Steps


class Watched:
    def __init__(self) -> None:
        self.steps = Steps()
        self.model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
        self.steps.roots.append(self.model)
        self.told: list[str] = []
        self.between = False
        self.within: list[bool] = []
        began, ended = (lambda said=said: self.told.append(said) for said in ("began", "ended"))
        self.besides: list[float] = []
        self.mode = EvaluationMode(
            self.steps, began, ended, self.within.append, lambda: self.between, self.besides.append
        )
        self.mode.watch()

    def trains(self, passes: int = RARE) -> None:
        self.steps.own_backwards += passes


@pytest.fixture
def watched() -> Iterator[Watched]:
    before = nn.Module.train
    made = Watched()
    yield made
    made.mode.give_up()
    assert nn.Module.train is before


def test_it_is_told_between_steps(watched: Watched) -> None:
    for _ in range(2):
        for _ in range(RARE):
            watched.model.train()  # As trainers do in each step.
            watched.trains(1)
        watched.model.eval()
        watched.model.eval()  # As the functions do that it calls.
        assert not watched.model[1].training
        watched.model.train()
        assert watched.model[1].training
    assert watched.told == ["began", "ended"] * 2


def test_a_model_that_changes_in_every_step_is_told_to_be_a_part_of_it(watched: Watched) -> None:
    for _ in range(4 * RARE):
        watched.model.eval()
        watched.model.eval()
        watched.model.train()
        watched.trains(1)
    assert watched.told == []
    assert watched.within == [True, False] * 4 * RARE
    assert watched.besides == []


def test_what_lasts_for_many_times_as_long_as_within_other_steps_is_told(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that acts in each step, and tests what it has learnt now and then."""
    clock = 0.0
    monkeypatch.setattr(evaluation_mode, "now", lambda: clock)

    def step(seconds: float, passes: int = 0) -> None:
        nonlocal clock
        watched.model.eval()
        watched.steps.own_backwards += passes
        clock += seconds
        watched.model.train()
        watched.trains(1)

    step(2.0)
    assert watched.besides == [], "how long it usually lasts is not known yet"
    for _ in range(10):
        step(0.01)
    step(0.19)
    step(0.21)
    assert watched.besides == pytest.approx([0.21])
    step(0.01)
    step(0.5, passes=1)
    assert len(watched.besides) == 1, "it trained meanwhile"
    assert watched.told == []
    # What is short is none of it, however much shorter the others are.
    watched.besides.clear()
    for _ in range(40):
        step(0.001)
    step(0.09)
    assert watched.besides == []


def test_between_epochs_it_is_told_however_few_steps_an_epoch_has(watched: Watched) -> None:
    """As where samples are shown at the end of each epoch, just behind the last evaluation."""
    for _ in range(3):
        watched.trains(1)
        watched.between = True
        watched.model.eval()
        watched.model.train()
        watched.between = False
    assert watched.told == ["began", "ended"] * 3


def test_other_models_and_parts_are_not_told(watched: Watched) -> None:
    watched.trains()
    nn.Dropout().eval()
    watched.model[1].eval()
    watched.model.train()
    other = threading.Thread(target=watched.model.eval)
    other.start()
    other.join()
    assert (watched.told, watched.within) == ([], [])


def test_one_that_goes_on_in_evaluation_mode_is_told_once(watched: Watched) -> None:
    watched.trains()
    watched.model.eval()
    for _ in range(3):
        watched.trains()
        watched.model.eval()
    assert watched.told == ["began"]
    watched.mode.give_up()
    watched.model.train()
    assert watched.told == ["began"]
