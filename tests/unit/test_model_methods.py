"""Methods that a loop calls in place of its model: which these are, by the lines that call the modules inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.own_modules import loaded

from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.autocast import Autocast
from bottleneck_doctor.runtime.loop.model_methods import called_methods, model_methods
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.wire.messages import Site

SOURCE = """import torch
from torch import nn


class Base(nn.Module):
    def spread(self, rows):
        return rows @ rows.T


class Ranking(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seen = []

    def forward(self, rows):
        return self.layer(rows)  # the module's call

    def train(self, mode=True):
        return super().train(mode)

    def loss(self, rows):
        self.seen.append((rows @ rows.T).dtype)
        return self.layer(rows).mean()  # in the method


class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def learn(self, rows):
        loss = self.layer(rows).mean()  # in the trainer
        loss.backward()  # and its backward pass


class Lightning(nn.Module):
    def training_step(self, rows):
        return self.layer(rows).mean()  # in the step


def step(model, rows):
    return model.loss(rows)  # in the loop
"""


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "ranking.py"
    path.write_text(SOURCE)
    yield loaded(path)
    sys.modules.pop("ranking", None)


def line(written: Any, comment: str) -> Site:
    number = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if text.endswith(f"# {comment}"))
    return Site(written.__file__, number)


def steps_of(written: Any, *called: str, backward: str = "") -> Steps:
    """Steps in which the first root was last called by lines with these comments, from the innermost out."""
    steps = Steps()
    steps.callers.forward_sites = [line(written, comment) for comment in called]
    steps.backward_site = line(written, backward) if backward else None
    return steps


def test_methods_around_the_call_of_a_module_are_the_models(written: Any) -> None:
    steps = steps_of(written, "in the method", "in the loop")
    assert set(model_methods(steps)) == {(written.Ranking, "forward"), (written.Ranking, "loss")}
    methods, site = called_methods(steps)
    assert sorted(methods) == [[written.__file__, "forward"], [written.__file__, "loss"]]
    assert site == line(written, "in the loop")


@pytest.mark.parametrize(
    ("called", "backward"),
    [
        (["in the loop"], ""),
        (["in the trainer"], "and its backward pass"),
        (["in the step", "in the loop"], ""),
        ([], ""),
    ],
    ids=["the model itself", "a class that trains", "a step of Lightning's", "nothing was seen"],
)
def test_other_methods_are_not(written: Any, called: list[str], backward: str) -> None:
    steps = steps_of(written, *called, backward=backward)
    assert model_methods(steps) == []
    assert called_methods(steps) == ([], None)


def test_a_method_whose_caller_is_not_the_users_has_no_line(written: Any) -> None:
    steps = steps_of(written, "in the method")
    assert model_methods(steps)
    assert called_methods(steps) == ([], None)


def test_autocast_begins_with_the_method(written: Any) -> None:
    model, rows = written.Ranking(), torch.ones(2, 4)
    before = vars(written.Ranking)["loss"]
    steps = steps_of(written, "in the method", "in the loop")
    steps.roots = [model.layer]
    knob, context = Autocast(), GuestContext(steps, "cpu")
    knob.apply("bfloat16", context)
    written.step(model, rows)
    knob.revert(context)
    written.step(model, rows)
    assert model.seen == [torch.bfloat16, torch.float32]
    assert vars(written.Ranking)["loss"] is before
