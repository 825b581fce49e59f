"""Batches that are handed over by name: what counts as many tensors, and workers that do it."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.multiprocessing
from torch import nn
from torch.utils.data import DataLoader, Dataset

from bottleneck_doctor.knobs import sharing_strategy as told
from bottleneck_doctor.runtime.knobs import shape
from bottleneck_doctor.runtime.knobs.sharing_strategy import (
    BY_NAME,
    NAME,
    Shares,
    SharingStrategy,
    tensors_handed_over,
)
from bottleneck_doctor.runtime.knobs.single_threaded import SingleThreaded
from bottleneck_doctor.runtime.loop.steps import Steps

MULTIPROCESSING: Any = torch.multiprocessing
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one way to share")


@dataclass
class Graph:
    nodes: torch.Tensor
    edges: list[torch.Tensor]


class Strategies(Dataset[str]):
    """Its samples say how their worker shares."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> str:
        return str(MULTIPROCESSING.get_sharing_strategy())


@pytest.mark.parametrize(
    ("batch", "tensors"),
    [
        (torch.zeros(3), 1),
        ({"a": torch.zeros(3), "b": [torch.zeros(1), (torch.zeros(2), 7)]}, 3),
        (Graph(torch.zeros(3), [torch.zeros(2), torch.ones(2)]), 3),
        ([[{"deep": [[torch.zeros(1)]]}]], 1),
        ([nn.Linear(2, 3)], 2),
        (["words", 3.0, None], 0),
    ],
    ids=["one", "nested", "an object", "deep", "a module", "none"],
)
def test_tensors_are_counted_wherever_they_lie(batch: Any, tensors: int) -> None:
    assert tensors_handed_over(batch) == tensors


def test_a_tensor_that_is_handed_over_twice_is_one() -> None:
    one = torch.zeros(3)
    assert tensors_handed_over([one, one]) == 1


def test_what_cannot_be_pickled_is_counted_by_what_can_be_seen() -> None:
    assert tensors_handed_over([lambda: 1, torch.zeros(1), torch.zeros(2)]) == 2


def test_what_was_seen_of_the_loop_s_own_loader_is_told() -> None:
    steps = Steps()
    own, other = DataLoader(Strategies(), num_workers=1), DataLoader(Strategies())
    SharingStrategy.batch_seen(steps, other, [torch.zeros(1)])
    for count in (9, 8, 1):
        SharingStrategy.batch_seen(steps, own, [torch.zeros(1) for _ in range(count)])
    assert SharingStrategy.facts(steps, "cpu", own) == {"tensors": 8}
    assert SharingStrategy.facts(steps, "cpu", own) is None


@ON_LINUX
def test_workers_share_by_name_and_this_process_as_before() -> None:
    before = MULTIPROCESSING.get_sharing_strategy()
    calls: list[int] = []
    loader = DataLoader(Strategies(), batch_size=None, num_workers=1, worker_init_fn=calls.append)
    window = copy.copy(loader)
    shape(window, {NAME: BY_NAME})
    assert set(window) == {BY_NAME}
    assert MULTIPROCESSING.get_sharing_strategy() == before
    assert isinstance(window.worker_init_fn, Shares)
    assert not isinstance(loader.worker_init_fn, Shares)

    class Feed:
        loader = window

    assert SharingStrategy().effect_on_loading(BY_NAME, Feed()) is True
    Feed.loader = loader
    assert SharingStrategy().effect_on_loading(BY_NAME, Feed()) is False


@ON_LINUX
def test_beside_another_knob_that_starts_workers_both_are_seen() -> None:
    loader = DataLoader(Strategies(), batch_size=None, num_workers=1)
    shape(loader, {NAME: BY_NAME, "single_threaded": "openblas"})

    class Feed:
        pass

    Feed.loader = loader  # type: ignore[attr-defined]
    assert SharingStrategy().effect_on_loading(BY_NAME, Feed()) is True
    assert SingleThreaded().effect_on_loading("openblas", Feed()) is True
    assert set(loader) == {BY_NAME}


def test_without_workers_nothing_is_handed_over() -> None:
    loader = DataLoader(Strategies(), batch_size=None)
    shape(loader, {NAME: BY_NAME})
    assert loader.worker_init_fn is None


@ON_LINUX
def test_the_user_s_own_strategy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SharingStrategy.own() is None
    monkeypatch.setattr(torch.multiprocessing, "get_sharing_strategy", lambda: BY_NAME)
    assert SharingStrategy.own() == BY_NAME


def test_a_system_with_one_strategy_has_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Strategies())
    if sys.platform == "linux":
        assert SharingStrategy.obstacle(Steps(), loader) == ""
    assert SharingStrategy.obstacle(Steps()) is None
    monkeypatch.setattr(torch.multiprocessing, "get_all_sharing_strategies", lambda: {BY_NAME})
    assert "anyway" in str(SharingStrategy.obstacle(Steps(), loader))


def test_both_sides_mean_the_same() -> None:
    assert (told.NAME, told.BY_NAME) == (NAME, BY_NAME)
