"""The knobs that give DistributedDataParallel another reducer: to which loops they apply, and that training goes on as
before. Two ranks: `tests/process/test_ranks.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, Refused, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps

dist = pytest.importorskip("torch.distributed")
SEARCH, VIEW = "find_unused_parameters", "gradient_as_bucket_view"
STATIC, CAP, COPIES = "static_graph", "bucket_cap_mb", "batched_grad_copy"
HAS_COPIES = COPIES in inspect.signature(nn.parallel.DistributedDataParallel).parameters
needs_copies = pytest.mark.skipif(not HAS_COPIES, reason="this release of torch has no `batched_grad_copy`")


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
            for name in (SEARCH, STATIC):
                kinds()[name].batch_seen(self.steps, None, None)
            self.optimizer.zero_grad()
            self.model(torch.ones(2, 3), both).square().sum().backward()
            self.optimizer.step()
        return self

    def obstacle(self, name: str) -> str:
        return obstacles(self.steps)[name]

    def applied(self, name: str, value: Any) -> Knob:
        knob: Knob = kinds()[name]()
        knob.apply(value, self.context)
        return knob

    def weights(self) -> list[float]:
        return [float(value) for each in self.model.parameters() for value in each.detach().flatten()]


@pytest.mark.parametrize("name", [SEARCH, VIEW, CAP, pytest.param(COPIES, marks=needs_copies)])
def test_to_which_loops_it_applies(name: str) -> None:
    own = {SEARCH: True}
    assert Training(**own).train().obstacle(name) == ""
    assert "no DistributedDataParallel" in Training(parallel=False).train().obstacle(name)
    assert "hook" in Training(hook=True, **own).train().obstacle(name)
    on = Training(find_unused_parameters=False, gradient_as_bucket_view=True, **({COPIES: True} if HAS_COPIES else {}))
    assert on.obstacle(name).startswith("already on") is (name != CAP)


def test_what_a_static_graph_has_seen_would_be_lost() -> None:
    training = Training(static_graph=True).train()
    assert "static_graph" in training.obstacle(VIEW)
    assert training.obstacle(SEARCH).startswith("already on")


def test_what_some_step_leaves_unused_has_to_be_looked_for() -> None:
    assert "do not use all" in Training(find_unused_parameters=True).train(both=False).obstacle(SEARCH)
    once = Training(find_unused_parameters=True).train().train(1, both=False).train()
    assert "do not use all" in once.obstacle(SEARCH)
    assert "it is not known" in Training(find_unused_parameters=True).obstacle(SEARCH)


def test_the_graph_is_static_where_all_steps_leave_out_the_same() -> None:
    assert Training(find_unused_parameters=True).train(both=False).obstacle(STATIC) == ""
    assert "uses all parameters" in Training(find_unused_parameters=True).train().obstacle(STATIC)
    changing = Training(find_unused_parameters=True).train(both=False).train(1).train(both=False)
    assert "same parameters" in changing.obstacle(STATIC)
    assert "does not look for" in Training().train().obstacle(STATIC)
    assert "it is not known" in Training(find_unused_parameters=True).obstacle(STATIC)
    assert Training(static_graph=True).train().obstacle(STATIC).startswith("already on")
    assert "hook" in Training(hook=True, find_unused_parameters=True).train(both=False).obstacle(STATIC)


def test_another_layer_of_the_same_size_is_seen_to_be_left_out() -> None:
    class Either(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.calls = nn.Linear(3, 3), nn.Linear(3, 3), 0

        def forward(self, rows: torch.Tensor, both: bool = True) -> Any:
            self.calls += 1
            return self.first(rows) if self.calls % 2 else self.second(rows)

    training = Training(find_unused_parameters=True)
    training.model = nn.parallel.DistributedDataParallel(Either(), find_unused_parameters=True)
    training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)
    training.steps.roots[:] = [training.model]
    assert "same parameters" in training.train(4).obstacle(STATIC)


def test_a_static_graph_trains_the_same_and_is_as_it_was_afterwards() -> None:
    training, as_written = (Training(find_unused_parameters=True).train(both=False) for _ in range(2))
    knob = training.applied(STATIC, True)
    training.train(both=False)
    assert knob.effect(True, training.context)
    beside = training.applied(VIEW, True)
    training.train(both=False)
    assert knob.effect(True, training.context), "another reducer's graph is static, too"
    assert beside.effect(True, training.context)
    beside.revert(training.context)
    knob.revert(training.context)
    assert knob.effect(False, training.context)
    # What has to be looked for is found again.
    training.train(both=False).train(2)
    as_written.train(9, both=False).train(2)
    assert training.weights() == as_written.weights()
    assert not training.model.static_graph


def test_what_is_told_of_buckets() -> None:
    training = Training(bucket_cap_mb=7).train()
    assert kinds()[CAP].facts(training.steps, "cpu") == {"gradients": 96, "cap": 7 << 20}
    assert kinds()[CAP].facts(Training().train().steps, "cpu") == {"gradients": 96, "cap": 25 << 20}


@pytest.mark.skipif(
    "bucket_cap_mb_list" not in inspect.signature(nn.parallel.DistributedDataParallel).parameters,
    reason="this release of torch has one size for all buckets",
)
def test_buckets_that_have_sizes_of_their_own_keep_them() -> None:
    assert "a size of its own" in Training(bucket_cap_mb_list=[1, 2]).train().obstacle(CAP)


@pytest.mark.parametrize("own", [{}, {"bucket_cap_mb": 3}])
def test_a_bucket_is_as_large_as_if_it_had_been_given(own: dict[str, Any]) -> None:
    training = Training(find_unused_parameters=True, **own).train()
    given = Training(find_unused_parameters=True, bucket_cap_mb=100).model._get_ddp_logging_data()
    before = dict(training.model._get_ddp_logging_data())
    kept = kinds()[CAP]().kept(training.model)
    knob = training.applied(CAP, 100)
    training.train()
    told = training.model._get_ddp_logging_data()
    assert told["bucket_cap_bytes"] == given["bucket_cap_bytes"] == 100 << 20
    expected = kinds()[CAP]().kept(Training(bucket_cap_mb=100).model)
    assert kinds()[CAP]().kept(training.model) == expected
    knob.revert(training.context)
    assert kinds()[CAP]().kept(training.model) == kept
    assert training.train().model._get_ddp_logging_data()["bucket_cap_bytes"] == before["bucket_cap_bytes"]


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        (SEARCH, False, True),
        (VIEW, True, False),
        (CAP, 100, 25),
        pytest.param(COPIES, True, False, marks=needs_copies),
    ],
)
def test_it_trains_the_same_and_is_as_it_was_afterwards(name: str, value: Any, other: Any) -> None:
    training, as_written = (Training(find_unused_parameters=True).train() for _ in range(2))
    before = dict(training.model._get_ddp_logging_data())
    knob = training.applied(name, value)
    training.train()
    assert knob.effect(value, training.context)
    assert not knob.effect(other, training.context)
    gradient = training.model.module.always.weight.grad
    assert gradient._is_view() is (name == VIEW)
    knob.revert(training.context)
    training.train()
    after = training.model._get_ddp_logging_data()
    assert all(after[each] == before[each] for each in (SEARCH, VIEW, "bucket_cap_bytes"))
    assert knob.effect(other, training.context)
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
