"""What a model computes between epochs: whether it keeps what a backward pass would need, and that the watching leaves
nothing behind."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.loop import evaluated
from bottleneck_doctor.runtime.loop.evaluated import MOST_PASSES, MOST_PAUSES, Evaluated
from bottleneck_doctor.runtime.loop.steps import Steps

BATCH = torch.ones(2, 4)


class Told(nn.Module):
    """Gives something other than tensors."""

    def forward(self, batch: Any) -> str:
        return "nothing"


class Program:
    """A model whose calls are watched between epochs."""

    def __init__(self) -> None:
        self.model: Any = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        self.steps = Steps()
        self.steps.roots.append(self.model)
        self.evaluated = Evaluated(self.steps)

    def train(self) -> None:
        self.model(BATCH).sum().backward()
        self.steps.backwards += 1

    def told(self) -> tuple[int, int]:
        return self.evaluated.passes, self.evaluated.with_graph


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    before = nn.Module.__call__
    # Another test of this process may have compiled something.
    monkeypatch.setattr(evaluated, "compiled_graphs", lambda: 0)
    made = Program()
    yield made
    made.evaluated.end()
    assert nn.Module.__call__ is before


def test_an_evaluation_with_gradients_is_seen_and_one_without_them(program: Program) -> None:
    program.evaluated.begin()
    for _ in range(2):
        program.model(BATCH)
    program.evaluated.end()
    assert program.told() == (2, 2)
    program.evaluated.begin()
    with torch.no_grad():
        program.model(BATCH)
    with torch.inference_mode():
        program.model(BATCH)
    program.evaluated.end()
    assert program.told() == (4, 2)


def test_a_pass_that_a_backward_pass_follows_is_training(program: Program) -> None:
    program.evaluated.begin()
    program.train()  # Of a loop that fetches ahead.
    with torch.no_grad():
        program.model(BATCH)
    program.evaluated.end()
    assert program.told() == (1, 0)
    program.evaluated.begin()
    with torch.no_grad():
        program.model(BATCH)
    program.train()  # Of another model's turn.
    program.evaluated.end()
    assert program.told() == (1, 0)


def test_what_is_called_in_steps_or_is_no_model_does_not_count(program: Program) -> None:
    program.model(BATCH)
    program.evaluated.begin()
    nn.Linear(4, 1)(BATCH)
    program.model[0](BATCH)
    program.evaluated.end()
    program.model(BATCH)
    program.evaluated.end()
    assert program.told() == (0, 0)


def test_within_steps_it_is_asked_whether_a_backward_pass_comes_to_what_came_out(program: Program) -> None:
    """One comes in each step. It may differentiate the loss of a batch alone, or what a teacher made of it, too."""
    seen = Evaluated(program.steps, within_steps=True)
    for uses in (False, True, False):
        seen.begin()
        out = program.model(BATCH)
        with torch.no_grad():
            program.model(BATCH)
        seen.rest()
        (program.model(BATCH) + (out if uses else 0)).sum().backward()
        program.steps.backwards += 1
        seen.end()
    assert (seen.passes, seen.with_graph) == (5, 2)


def test_only_a_few_passes_of_a_few_pauses_are_looked_at(program: Program) -> None:
    before = nn.Module.__call__
    for pause in range(MOST_PAUSES + 2):
        program.evaluated.begin()
        for number in range(2 * MOST_PASSES):
            program.model(BATCH)
            if number >= MOST_PASSES:
                assert nn.Module.__call__ is before, pause
        program.evaluated.end()
    assert program.told() == (MOST_PAUSES * MOST_PASSES, MOST_PAUSES * MOST_PASSES)


def test_a_model_that_is_saved_or_copied_meanwhile_is_as_it_was(program: Program) -> None:
    program.evaluated.begin()
    program.model(BATCH)
    assert copy.deepcopy(program.model).state_dict().keys() == program.model.state_dict().keys()
    assert b"evaluated" not in pickle.dumps(program.model)
    program.evaluated.end()


def test_nothing_is_watched_where_something_is_compiled(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluated, "compiled_graphs", lambda: 1)
    before = nn.Module.__call__
    program.evaluated.begin()
    assert nn.Module.__call__ is before
    program.model(BATCH)
    program.evaluated.end()
    assert program.told() == (0, 0)


def test_an_output_without_tensors_tells_nothing(program: Program) -> None:
    program.steps.roots[:] = [model := Told()]
    program.evaluated.begin()
    model(BATCH)
    program.evaluated.end()
    assert program.told() == (0, 0)


def test_what_others_put_there_later_stays(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    before = nn.Module.__call__
    program.evaluated.begin()
    inner = nn.Module.__call__

    def theirs(module: Any, /, *args: Any, **kwargs: Any) -> Any:
        return inner(module, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", theirs)
    program.evaluated.end()
    assert nn.Module.__call__ is theirs
    program.model(BATCH)
    assert program.told() == (0, 0)
    monkeypatch.undo()
    nn.Module.__call__ = before  # type: ignore[method-assign]
