"""The knob by which ranks exchange gradients once for each update: to which loops it applies, and in which passes it
keeps gradients back. Two ranks: `tests/process/test_ranks.py`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, Refused, facts, kinds, obstacles, watch
from bottleneck_doctor.runtime.loop.steps import Steps

dist = pytest.importorskip("torch.distributed")
NAME = "no_sync"


@pytest.fixture(autouse=True)
def _one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Training:
    """A model whose gradients are exchanged after `passes` backward passes for each update, as the user wrote it."""

    def __init__(self, *, passes: int = 3, parallel: bool = True, **options: Any) -> None:
        torch.manual_seed(0)
        model: Any = nn.Linear(3, 1)
        self.model: Any = nn.parallel.DistributedDataParallel(model, **options) if parallel else model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.passes = passes
        self.exchanged: list[bool] = []
        self.steps = Steps()
        watch(self.steps)
        self.context = GuestContext(self.steps, "cpu")

    def accumulate(self) -> None:
        loss = self.model(torch.ones(2, 3)).sum()
        self.exchanged.append(getattr(self.model, "require_backward_grad_sync", False))
        self.steps._backward_begins(loss)
        loss.backward()
        self.steps.own_backwards += 1

    def update(self, passes: int | None = None) -> None:
        for _ in range(self.passes if passes is None else passes):
            self.accumulate()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps.optimizer_steps += 1

    def seen(self, updates: int = 3) -> Training:
        """After some updates; models are known from the end of the first one on."""
        for _ in range(updates):
            self.update()
            self.steps.roots[:], self.steps.optimizers[:] = [self.model], [self.optimizer]
        return self

    def obstacle(self) -> str:
        return obstacles(self.steps)[NAME]

    def applied(self) -> Knob:
        facts(self.steps, "cpu")
        knob: Knob = kinds()[NAME]()
        knob.apply(True, self.context)
        self.exchanged.clear()
        return knob


# -- to which loops it applies -----------------------------------------------------------------------------------------


def test_several_passes_for_an_update_are_seen() -> None:
    assert Training().seen().obstacle() == ""
    assert "followed by an update" in Training(passes=1).seen().obstacle()
    assert "no DistributedDataParallel" in Training(parallel=False).seen().obstacle()
    assert "it is not known" in Training().seen(1).obstacle()
    assert "static_graph" in Training(static_graph=True).seen().obstacle()


def test_passes_that_the_user_keeps_back_already() -> None:
    class Kept(Training):
        def accumulate(self) -> None:
            with self.model.no_sync():
                super().accumulate()

    assert Kept().seen().obstacle().startswith("already on")


def test_a_pass_that_is_a_part_of_another_is_no_second_one() -> None:
    class Nested(Training):
        def accumulate(self) -> None:
            self.steps._backward_begins(None)
            super().accumulate()

    assert "followed by an update" in Nested(passes=1).seen().obstacle()


def test_several_optimizers_share_no_passes() -> None:
    training = Training().seen()
    training.steps.optimizers.append(torch.optim.SGD(training.model.parameters(), lr=0.1))
    assert "several optimizers" in training.obstacle()


def test_nothing_watches_once_the_loop_is_found() -> None:
    training = Training().seen()
    assert training.steps.on_backward is not None
    assert facts(training.steps, "cpu")[NAME] == {"passes": 3}
    assert training.steps.on_backward is None


def test_it_is_refused_where_no_update_was_seen() -> None:
    with pytest.raises(Refused):
        Training().applied()


# -- what it keeps back ------------------------------------------------------------------------------------------------


def test_only_the_last_pass_of_an_update_exchanges() -> None:
    training = Training().seen()
    knob = training.applied()
    training.update()  # It may have begun before the window.
    assert training.exchanged == [True] * 3
    assert knob.effect(True, training.context) is None
    training.update()
    training.update()
    assert training.exchanged[3:] == [False, False, True] * 2
    assert knob.effect(True, training.context)
    knob.revert(training.context)
    training.exchanged.clear()
    training.update()
    assert training.exchanged == [True] * 3
    assert not training.model._forward_pre_hooks


def test_passes_without_gradients_are_left_alone() -> None:
    training = Training().seen()
    training.applied()
    training.update()
    training.accumulate()
    with torch.no_grad():
        training.model(torch.ones(2, 3))
    training.accumulate()
    training.accumulate()
    assert training.exchanged[3:] == [False, False, True]


def test_an_update_of_more_passes_exchanges_after_each_of_the_last() -> None:
    training = Training().seen()
    training.applied()
    training.update()
    training.update(5)
    assert training.exchanged[3:] == [False, False, True, True, True]


def test_a_short_update_is_exchanged_before_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges: list[Any] = []
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, group: exchanges.append(tensor))
    training = Training().seen()
    knob = training.applied()
    # Hooks of others follow ours: torch goes through all of them, and none may be taken out meanwhile.
    others: list[Any] = []
    training.optimizer.register_step_pre_hook(lambda *ignored: others.append(1))
    training.update()
    training.update()
    assert not exchanges
    training.update(2)
    assert [each.shape for each in exchanges] == [(1, 3), (1,)]
    training.accumulate()
    # The window ends within an update, which then turns out to be short: it is exchanged all the same.
    knob.revert(training.context)
    training.update(0)
    assert len(exchanges) == 4
    training.update(1)
    assert len(exchanges) == 4
    assert not training.model._forward_pre_hooks
    assert len(training.optimizer._optimizer_step_pre_hooks) == 1
    assert len(others) == 5


def test_a_window_that_ends_within_an_update_leaves_the_rest_to_its_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, group: pytest.fail("exchanged twice"))
    training = Training().seen()
    knob = training.applied()
    training.update()
    training.accumulate()
    knob.revert(training.context)
    training.update(2)
    assert training.exchanged[3:] == [False, True, True]
    assert not training.model._forward_pre_hooks


def test_a_parameter_that_this_rank_did_not_use_gets_the_gradient_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle, self.unused = (nn.Linear(3, 1, bias=False) for _ in range(3))

        def forward(self, rows: Any) -> Any:
            return self.used(rows)

    training = Training()
    partly = Partly()
    training.model = nn.parallel.DistributedDataParallel(partly, find_unused_parameters=True)
    training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.1)
    training.seen()
    training.applied()
    training.update()
    weights = [partly.used.weight, partly.idle.weight, partly.unused.weight]
    before = [each.detach().clone() for each in weights]
    told = iter([0.0, 1.0, 0.0])
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, group: tensor.add_(next(told)))
    training.update(1)
    assert not torch.equal(before[0], weights[0])
    assert torch.allclose(before[1] - 0.1, weights[1])
    assert torch.equal(before[2], weights[2])


def test_a_copy_of_the_model_has_hooks_that_do_nothing() -> None:
    training = Training().seen()
    training.applied()
    training.update()
    copied = copy.deepcopy(training.model.module)
    copied(torch.ones(2, 3))
    assert training.exchanged == [True] * 3
