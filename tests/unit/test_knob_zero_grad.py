"""The knob that has gradients set to None: what is seen of how they are cleared, and what is left of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.loop.zero_grads import ZeroGrads

NAME = "zero_grad_none"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = torch.optim.Optimizer.zero_grad, nn.Module.zero_grad
    yield
    assert before == (torch.optim.Optimizer.zero_grad, nn.Module.zero_grad)


class Training:
    """`zeros`: whether gradients are filled with zeros. `unused`: whether the second layer is left out of the model."""

    def __init__(self, *, zeros: bool = True, unused: bool = False) -> None:
        torch.manual_seed(0)
        self.model: Any = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        self.zeros, self.unused = zeros, unused
        self.steps = Steps()
        self.steps.roots, self.steps.optimizers = [self.model], [self.optimizer]
        self.context = GuestContext(self.steps, "cpu")

    def step(self, *, by_model: bool = False) -> None:
        owner: Any = self.model if by_model else self.optimizer
        owner.zero_grad(set_to_none=not self.zeros)
        first = self.model[0](torch.ones(2, 3))
        (first.sum() if self.unused else self.model[1](first).sum()).backward()
        self.steps.zero_grads.step_begins(self.optimizer)
        self.optimizer.step()

    def seen(self, count: int = 4, **how: Any) -> Training:
        """After some steps that were looked at."""
        self.steps.zero_grads.install()
        try:
            for _ in range(count):
                self.step(**how)
        finally:
            self.steps.zero_grads.stop()
        return self

    def obstacle(self) -> str:
        return obstacles(self.steps)[NAME]

    def gradients(self) -> list[Any]:
        return [parameter.grad for parameter in self.model.parameters()]


def applied(training: Training) -> Knob:
    knob: Knob = kinds()[NAME]()
    knob.apply(True, training.context)
    return knob


# -- what is seen ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_model", [False, True])
def test_zeros_are_seen_whoever_clears(by_model: bool) -> None:
    assert Training().seen(by_model=by_model).obstacle() == ""
    assert "already on" in Training(zeros=False).seen(by_model=by_model).obstacle()


def test_a_program_that_clears_by_itself_is_left_alone() -> None:
    training = Training()
    assert "does not clear" in training.obstacle()
    with pytest.raises(ValueError, match="does not clear"):
        applied(training)


def test_the_first_call_of_all_clears_nothing() -> None:
    training = Training()
    training.optimizer.zero_grad(set_to_none=False)
    assert "already on" in training.seen(1).obstacle(), "no gradient was there to be filled"
    assert training.seen(1).obstacle() == ""


def test_a_parameter_without_a_gradient_is_moved_on_by_zeros_alone() -> None:
    training = Training()
    training.step()  # Once it has one.
    training.unused = True
    assert "gets no gradient" in training.seen().obstacle()


def test_gradients_in_a_buffer_stay_there() -> None:
    training = Training()
    flat = torch.zeros(sum(each.numel() for each in training.model.parameters()))
    begin = 0
    for each in training.model.parameters():
        each.grad = flat[begin : begin + each.numel()].view_as(each)
        begin += each.numel()
    assert "buffer" in training.seen().obstacle()


def test_gradients_of_a_captured_step_stay_where_they_are() -> None:
    training = Training().seen()
    training.optimizer.param_groups[0]["capturable"] = True
    assert "CUDA graph" in training.obstacle()


def test_an_owner_unlike_any_known_does_no_harm() -> None:
    class Odd(torch.optim.SGD):
        def zero_grad(self, set_to_none: bool = False) -> None:
            groups, self.param_groups = self.param_groups, []
            super().zero_grad(set_to_none)
            del self.param_groups
            self.param_groups = groups

    seen = ZeroGrads()
    seen.install()
    Odd(nn.Linear(1, 1).parameters()).zero_grad()
    seen.stop()
    assert seen.obstacle()


# -- in a window -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_model", [False, True])
def test_gradients_are_none_in_the_window_and_the_numbers_are_the_same(by_model: bool) -> None:
    other, plain = Training().seen(), Training().seen()
    knob = applied(other)
    assert knob.effect(True, other.context) is None, "nothing was cleared yet"
    for _ in range(5):
        held = other.gradients()
        other.step(by_model=by_model)
        assert not any(one is two for one, two in zip(held, other.gradients(), strict=True)), "they were let go"
    assert knob.effect(True, other.context) is True
    knob.timed_part_begins(other.context)
    assert not other.optimizer._optimizer_step_pre_hooks, "nothing is looked at while steps are timed"
    other.step()
    knob.revert(other.context)
    for _ in range(6):
        plain.step()
    held = other.gradients()
    other.step()
    plain.step()
    assert all(one is two for one, two in zip(held, other.gradients(), strict=True)), "they are kept again"
    for one, two in zip(other.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one.grad, two.grad)
    assert str(other.optimizer.state_dict()) == str(plain.optimizer.state_dict())


def test_what_was_cleared_as_the_window_ends_is_zeros_again() -> None:
    training = Training().seen()
    knob = applied(training)
    training.optimizer.zero_grad(set_to_none=False)
    assert training.gradients() == [None] * 4
    knob.revert(training.context)
    assert all(not gradient.any() and not gradient.requires_grad for gradient in training.gradients())


def test_what_else_the_program_clears_stays_as_written() -> None:
    training = Training().seen()
    other: Any = nn.Linear(2, 1)
    other(torch.ones(1, 2)).sum().backward()
    knob = applied(training)
    other.zero_grad(set_to_none=False)
    assert not other.weight.grad.any()
    training.optimizer.zero_grad(False)
    assert training.gradients() == [None] * 4
    knob.revert(training.context)


def test_a_parameter_that_gets_no_gradient_in_the_window_has_it_fail() -> None:
    training = Training().seen()
    knob = applied(training)
    training.unused = True
    training.step()
    assert knob.effect(True, training.context) is False
    knob.revert(training.context)


def test_a_bound_method_that_was_taken_before_goes_on() -> None:
    training = Training()
    training.steps.zero_grads.install()
    taken = training.optimizer.zero_grad
    training.step()
    training.steps.zero_grads.stop()
    taken(set_to_none=False)
    assert all(not gradient.any() for gradient in training.gradients())
    copied = copy.deepcopy(training.optimizer)
    copied.zero_grad()
    assert copied.param_groups[0]["params"][0].grad is None
