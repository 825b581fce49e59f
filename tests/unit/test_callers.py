"""Which modules are taken for the model that trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.loop.callers import Callers


@pytest.fixture
def callers() -> Iterator[Callers]:
    made = Callers()
    made.install()
    yield made
    made.stop()


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 1))


def found(callers: Callers, values: Sequence[torch.Tensor], *calls: Callable[[], object]) -> list[nn.Module]:
    for call in calls:
        call()
    callers.find([torch.optim.SGD(values, lr=0.1)])
    return callers.roots


def test_it_is_the_outermost_whose_weights_the_optimizer_holds(callers: Callers) -> None:
    model, other, rows = net(), net(), torch.ones(2, 4)
    loss = nn.MSELoss()
    held = list(model.parameters())
    assert found(callers, held, lambda: other(rows), lambda: loss(model(rows), torch.ones(2, 1))) == [model]


def test_a_later_optimizer_of_the_same_step_does_not_move_where_that_begins(callers: Callers) -> None:
    """As that of a GAN's generator, for which the critic is called once more."""
    critic, generator, rows = net(), nn.Linear(4, 4), torch.ones(2, 4)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (critic, generator)]
    lines = []
    for _ in range(2):
        critic(rows)
        critic(generator(rows).detach())
        callers.find(optimizers[:1])
        lines.append(callers.forward_sites[0])
        critic(generator(rows))
        callers.find(optimizers, within=True)
        lines.append(callers.forward_sites[0])
    assert callers.roots == [critic, generator]
    assert len({(each.file, each.line) for each in lines}) == 1
    critic(rows)
    callers.find(optimizers)
    assert callers.forward_sites[0].line > lines[0].line, "the next step tells it anew"


def test_a_step_begins_at_the_model_that_it_calls_first_whichever_optimizer_steps_first(callers: Callers) -> None:
    """As in a GAN that computes its pictures once for both of its optimizers, and trains the critic first."""
    critic, generator, rows = net(), nn.Linear(4, 4), torch.ones(2, 4)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (critic, generator)]
    critic(rows)
    callers.find(optimizers[:1])
    begun = callers.forward_sites[0].line
    for _ in range(2):
        made = generator(rows)
        critic(made.detach())
        callers.find(optimizers)
        critic(made)
        callers.find(optimizers, within=True)
    assert callers.roots == [critic, generator]
    assert callers.forward_sites[0].line == begun + 4


@pytest.mark.parametrize(("shape", "pictures"), [((2, 3, 8, 8), True), ((2, 3, 4), False)])
def test_whether_a_model_takes_pictures_is_seen_at_its_calls(
    shape: tuple[int, ...], pictures: bool, callers: Callers
) -> None:
    model, values = nn.Sequential(nn.Flatten(2), nn.Linear(shape[-1] ** (len(shape) - 2), 1)), torch.ones(shape)
    assert callers.take_pictures() is None
    found(callers, list(model.parameters()), lambda: nn.Conv2d(3, 3, 1)(torch.ones(1, 3, 2, 2)), lambda: model(values))
    assert callers.take_pictures() is pictures


def test_what_is_optimized_may_be_given_to_a_model(callers: Callers) -> None:
    """A picture that is to take on a style, or what a network is to be fooled by."""
    model, features, loss = net().requires_grad_(False), net(), nn.MSELoss()
    picture = torch.ones(2, 4, requires_grad=True)
    assert found(
        callers, [picture], lambda: features(torch.ones(2, 4)), lambda: loss(model(picture), torch.ones(2, 1))
    ) == [model]


def test_a_copy_of_the_weights_that_an_optimizer_holds_is_given_to_nobody(callers: Callers) -> None:
    """As those in float32 of a model in bfloat16. Parts of the model are given what needs a gradient."""
    model = net()
    copies = [each.detach().clone().requires_grad_() for each in model.parameters()]
    assert found(callers, copies, lambda: model(torch.ones(2, 4))) == []
