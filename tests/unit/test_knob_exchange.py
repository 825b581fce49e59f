"""The knobs that give DistributedDataParallel another reducer: to which loops they apply, and that training goes on as
before. Two ranks: `tests/process/test_ranks.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, Refused, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps

dist = pytest.importorskip("torch.distributed")
SEARCH, VIEW = "find_unused_parameters", "gradient_as_bucket_view"


@pytest.fixture(autouse=True)
def _one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Branching(nn.Module):
    """Uses its second layer in some steps only."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, rows: torch.Tensor, both: bool = True) -> torch.Tensor:
        rows = self.always(rows)
        return self.sometimes(rows) if both else rows


class Training:
    """`parallel`: whether ranks exchange gradients; `options`: of what does so. `hook`: whether the program has its own
    way of doing it."""

    def __init__(self, *, parallel: bool = True, hook: bool = False, **options: Any) -> None:
        torch.manual_seed(0)
        model: Any = Branching()
        self.model: Any = nn.parallel.DistributedDataParallel(model, **options) if parallel else model
        if hook:
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

            self.model.register_comm_hook(None, fp16_compress_hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps = Steps()
        self.steps.roots.append(self.model)
        self.steps.optimizers.append(self.optimizer)
        self.context = GuestContext(self.steps, "cpu")

    def train(self, count: int = 3, *, both: bool = True) -> Training:
        for _ in range(count):
            kinds()[SEARCH].batch_seen(self.steps, None, None)
            self.optimizer.zero_grad()
            self.model(torch.ones(2, 3), both).square().sum().backward()
            self.optimizer.step()
        return self

    def obstacle(self, name: str) -> str:
        return obstacles(self.steps)[name]

    def applied(self, name: str, value: bool) -> Knob:
        knob: Knob = kinds()[name]()
        knob.apply(value, self.context)
        return knob

    def weights(self) -> list[float]:
        return [float(value) for each in self.model.parameters() for value in each.detach().flatten()]


@pytest.mark.parametrize("name", [SEARCH, VIEW])
def test_to_which_loops_it_applies(name: str) -> None:
    own = {SEARCH: True}
    assert Training(**own).train().obstacle(name) == ""
    assert "no DistributedDataParallel" in Training(parallel=False).train().obstacle(name)
    assert "hook" in Training(hook=True, **own).train().obstacle(name)
    assert Training(find_unused_parameters=False, gradient_as_bucket_view=True).obstacle(name).startswith("already on")


def test_what_a_static_graph_has_seen_would_be_lost() -> None:
    training = Training(static_graph=True).train()
    assert "static_graph" in training.obstacle(VIEW)
    assert training.obstacle(SEARCH).startswith("already on")


def test_what_some_step_leaves_unused_has_to_be_looked_for() -> None:
    assert "do not use all" in Training(find_unused_parameters=True).train(both=False).obstacle(SEARCH)
    once = Training(find_unused_parameters=True).train().train(1, both=False).train()
    assert "do not use all" in once.obstacle(SEARCH)
    assert "it is not known" in Training(find_unused_parameters=True).obstacle(SEARCH)


@pytest.mark.parametrize(("name", "value"), [(SEARCH, False), (VIEW, True)])
def test_it_trains_the_same_and_is_as_it_was_afterwards(name: str, value: bool) -> None:
    training, as_written = (Training(find_unused_parameters=True).train() for _ in range(2))
    before = dict(training.model._get_ddp_logging_data())
    knob = training.applied(name, value)
    training.train()
    assert knob.effect(value, training.context)
    assert not knob.effect(not value, training.context)
    gradient = training.model.module.always.weight.grad
    assert gradient._is_view() is (name == VIEW)
    knob.revert(training.context)
    training.train()
    assert training.model._get_ddp_logging_data()[name] == before[name]
    assert not training.model.module.always.weight.grad._is_view()
    # What has to be looked for is found again.
    training.train(2, both=False)
    as_written.train(6).train(2, both=False)
    assert training.weights() == as_written.weights()


def test_both_are_had_together() -> None:
    training = Training(find_unused_parameters=True).train()
    first = training.applied(SEARCH, False)
    second = training.applied(VIEW, True)
    training.train()
    assert first.effect(False, training.context)
    assert second.effect(True, training.context)
    for knob in (first, second):
        knob.revert(training.context)
    training.train()
    assert (training.model.find_unused_parameters, training.model.gradient_as_bucket_view) == (True, False)


def test_the_old_one_lets_go_of_the_backward_pass() -> None:
    """Else each gradient would be exchanged once for each reducer that the model ever had."""
    training = Training(find_unused_parameters=True).train()
    made: list[Any] = []
    training.model.register_comm_hook(made, lambda state, bucket: _counted(state, bucket))
    training.train(1)
    once = len(made)
    knob = training.applied(VIEW, True)
    training.train(1)
    assert once
    assert len(made) == once
    knob.revert(training.context)


def _counted(made: list[Any], bucket: Any) -> Any:
    made.append(bucket.index())
    done = torch.futures.Future()  # type: ignore[var-annotated]
    done.set_result(bucket.buffer())
    return done


def test_it_is_refused_where_nothing_exchanges_gradients() -> None:
    with pytest.raises(Refused):
        Training(parallel=False).applied(VIEW, True)
