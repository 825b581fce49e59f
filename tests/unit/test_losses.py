"""The guest keeps losses of real loops, without changing or waiting for anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.loop.losses import LARGEST, MOST, Losses
from bottleneck_doctor.runtime.loop.steps import Steps


@pytest.fixture
def steps() -> Iterator[Steps]:
    """Hooks on the real torch, taken away again."""
    backward, grad, scaler_step = torch.autograd.backward, torch.autograd.grad, torch.amp.GradScaler.step
    made = Steps()
    made.install()
    yield made
    made.stop_observing()
    torch.autograd.backward, torch.autograd.grad = backward, grad
    torch.amp.GradScaler.step = scaler_step  # type: ignore[method-assign]


def train(steps: Steps, count: int, *, passes: int = 1) -> list[float]:
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    for _ in range(count):
        optimizer.zero_grad()
        for _ in range(passes):
            loss = net(torch.randn(8, 4)).square().mean()
            loss.backward()
            seen.append(loss.item())
        optimizer.step()
    return seen


def test_losses_come_with_the_steps_before_them(steps: Steps) -> None:
    train(steps, 3)
    assert steps.losses.read() == []
    steps.losses.wanted = True
    before = steps.optimizer_steps
    seen = train(steps, 5)
    told = steps.losses.read()
    assert [step for step, _ in told] == [before + each for each in range(5)]
    assert [loss for _, loss in told] == pytest.approx(seen)
    assert steps.losses.read() == []


def test_a_step_of_several_passes_has_their_mean(steps: Steps) -> None:
    train(steps, 1)
    steps.losses.wanted = True
    seen = train(steps, 2, passes=2)
    assert [loss for _, loss in steps.losses.read()] == pytest.approx([sum(seen[:2]) / 2, sum(seen[2:]) / 2])


def test_a_closure_s_passes_count_and_scaled_losses_do_not(steps: Steps) -> None:
    """Lightning runs every step's passes in a closure."""
    steps.losses.wanted = True
    seen = []
    net = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = net(torch.ones(1, 2)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        seen.append(loss.item())
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    assert [loss for _, loss in steps.losses.read()] == pytest.approx([sum(seen) / len(seen)])
    steps.user_scaler = True
    train(steps, 2)
    assert steps.losses.read() == []


def test_memory_is_bounded() -> None:
    losses = Losses()
    large = torch.zeros(LARGEST)
    losses.note(0, large[0])
    losses.note(0, torch.zeros(3))
    losses.note(0, "no tensor")
    assert losses.read() == []
    for step in range(MOST + 10):
        losses.note(step, (torch.tensor(1.0),))
    assert len(losses.read()) == MOST


def test_it_holds_no_graph_and_knows_half_precision() -> None:
    losses = Losses()
    weight = torch.ones(1, requires_grad=True)
    losses.note(4, (weight * 2).sum().to(torch.bfloat16))
    assert all(not loss.requires_grad for _, loss, _ in losses._kept)
    assert losses.read() == [[4.0, 2.0]]


def test_a_loss_that_is_written_into_is_left_out() -> None:
    losses = Losses()
    kept, changed = torch.tensor(1.0), torch.tensor(2.0)
    losses.note(0, kept)
    losses.note(1, changed)
    changed.zero_()
    assert losses.read() == [[0.0, 1.0]]
