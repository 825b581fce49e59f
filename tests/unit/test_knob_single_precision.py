"""The knob by which a model in float64 computes in float32: to which models it applies, and that all is as it was
afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, Refused, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps

NAME = "single_precision"


@pytest.fixture(autouse=True)
def _as_at_first() -> Iterator[None]:
    """Whatever other tests have compiled in this process, and whatever type these leave as the default."""
    torch._dynamo.utils.counters.clear()
    yield
    torch.set_default_dtype(torch.float32)


class Net(nn.Module):
    """Has a buffer too, and makes a tensor of torch's default type. `types`: what it was called with, and what it
    made."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.register_buffer("scale", torch.full((2,), 0.5))
        self.types: list[torch.dtype] = []
        self.fails = False

    def forward(self, rows: torch.Tensor) -> Any:
        if self.fails:
            raise ValueError("no rows")
        made = torch.zeros(2)
        self.types += [rows.dtype, made.dtype]
        return self.layer(rows) * self.scale + made


def in_double() -> Net:
    """The same weights each time, whatever other tests have drawn."""
    torch.manual_seed(0)
    return Net().double()


class Training:
    def __init__(self, model: Any, kind: Any = torch.optim.Adam) -> None:
        torch.manual_seed(0)
        self.model = model
        self.optimizer = kind(model.parameters(), lr=0.01)
        self.steps = Steps()
        self.steps.roots.append(model)
        self.steps.optimizers.append(self.optimizer)
        self.context = GuestContext(self.steps, "cpu")
        self.rows = torch.randn(8, 3, dtype=torch.float64)
        self.wanted = torch.randn(8, 2, dtype=torch.float64)
        self.losses: list[torch.Tensor] = []

    def train(self, count: int = 3) -> Training:
        def closure() -> Any:
            self.optimizer.zero_grad()
            loss: Any = nn.functional.mse_loss(self.model(self.rows), self.wanted)
            loss.backward()
            self.losses.append(loss.detach())
            return loss

        for _ in range(count):
            self.optimizer.step(closure)
        return self

    def obstacle(self) -> str:
        return obstacles(self.steps)[NAME]

    def applied(self) -> Knob:
        knob: Knob = kinds()[NAME]()
        knob.apply(True, self.context)
        return knob

    def types(self) -> set[torch.dtype]:
        """Of weights, buffers, gradients and the optimizer's state, but for its counts of steps."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        tensors += [each.grad for each in self.model.parameters() if each.grad is not None]
        for state in self.optimizer.state.values():
            tensors += [value for value in state.values() if isinstance(value, torch.Tensor) and value.dim()]
        return {each.dtype for each in tensors}


def test_to_which_models_it_applies() -> None:
    assert Training(Net().double()).obstacle() == ""
    assert "nothing of the model" in Training(Net()).obstacle()
    assert "the rest is not" in Training(nn.Sequential(nn.Linear(3, 3).double(), nn.Linear(3, 2))).obstacle()
    compiled = Net().double()
    compiled.compile()
    assert "compiled" in Training(compiled).obstacle()
    with pytest.raises(Refused):
        Training(Net()).applied()


def test_what_was_made_for_its_types_is_left_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises against it, but programs may still be of this kind.
        scripted = torch.jit.trace(nn.Linear(3, 2).double(), torch.ones(1, 3, dtype=torch.float64))  # type: ignore[no-untyped-call]
    assert "TorchScript" in Training(scripted).obstacle()


def test_weights_of_other_processes_keep_their_place() -> None:
    shared = Net().double()
    shared.share_memory()
    assert "shared with other processes" in Training(shared).obstacle()
    flat = torch.zeros(8, dtype=torch.float64)
    views = Net().double()
    views.layer.weight.data, views.layer.bias.data = flat[:6].view(2, 3), flat[6:]
    assert "share a block" in Training(views).obstacle()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.LBFGS])
def test_it_trains_alike_and_is_as_it_was_afterwards(kind: Any) -> None:
    training, as_written = (Training(in_double(), kind).train() for _ in range(2))
    training.model.load_state_dict(as_written.model.state_dict())
    weights = [id(each) for each in training.model.parameters()]
    knob = training.applied()
    assert training.types() == {torch.float32}
    training.model.types.clear()
    training.train()
    assert set(training.model.types) == {torch.float32}
    assert training.types() == {torch.float32}
    assert knob.effect(True, training.context)
    knob.revert(training.context)
    assert training.types() == {torch.float64}
    assert [id(each) for each in training.model.parameters()] == weights
    training.model.types.clear()
    training.train()
    as_written.train(6)
    assert training.model.types[0] is torch.float64
    assert {loss.dtype for loss in training.losses} == {torch.float64}
    assert [float(loss) for loss in training.losses] == pytest.approx(
        [float(loss) for loss in as_written.losses], rel=1e-3
    )


def test_the_default_type_is_another_one_in_the_model_only() -> None:
    torch.set_default_dtype(torch.float64)
    training = Training(Net())
    assert training.obstacle() == ""
    knob = training.applied()
    training.train()
    assert set(training.model.types) == {torch.float32}
    assert torch.get_default_dtype() is torch.float64
    training.model.fails = True
    with pytest.raises(ValueError, match="no rows"):
        training.model(training.rows)
    assert torch.get_default_dtype() is torch.float64
    knob.revert(training.context)
    assert torch.get_default_dtype() is torch.float64
    assert training.types() == {torch.float64}


def test_a_model_that_calls_another_gets_what_that_one_made() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Net().double()
            self.layer = nn.Linear(2, 2).double()
            self.made: list[torch.dtype] = []

        def forward(self, rows: torch.Tensor) -> Any:
            between = self.inner(rows)
            self.made.append(between.dtype)
            return self.layer(between)

    training = Training(Outer())
    training.steps.roots.append(training.model.inner)
    knob = training.applied()
    training.train(2)
    assert training.model.made == [torch.float32] * 2
    assert training.model.inner(training.rows).dtype is torch.float64
    knob.revert(training.context)
    training.train(1)
    assert training.model.made[-1] is torch.float64


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_it_is_switched_in_the_midst_of_a_step_that_calls_a_closure(search: str | None) -> None:
    """Such a step may be the whole training. What LBFGS computes with by then is in its variables."""

    def losses(switched: bool) -> list[float]:
        training = Training(in_double(), torch.optim.LBFGS)
        steps, seen = training.steps, list[float]()
        optimizer: Any = torch.optim.LBFGS(
            training.model.parameters(), lr=0.1, max_iter=40, max_eval=40, line_search_fn=search,
            tolerance_grad=0, tolerance_change=0,
        )  # fmt: skip
        steps.optimizers[:] = [optimizer]
        knobs: list[Knob] = []

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = (training.model(training.rows) - training.wanted).square().mean()
            loss.backward()  # type: ignore[no-untyped-call]
            seen.append(loss.item())
            if switched and len(seen) == 11:
                knobs.append(training.applied())
            if switched and len(seen) == 21:
                assert training.types() == {torch.float32}
                knobs[0].revert(training.context)
            return loss

        changed = steps.closures.step_begins(optimizer, (optimizer, closure), {})
        assert changed is not None
        optimizer.step(changed[0][1])
        assert training.types() == {torch.float64}
        return seen

    assert losses(switched=True)[:30] == pytest.approx(losses(switched=False)[:30], rel=1e-3)
