"""Batches that are made of several of the user's: the same samples in the same order, and none lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

from bottleneck_doctor.runtime.knobs._rebatched import Joined
from bottleneck_doctor.runtime.knobs.batch_size import BatchSize, obstacle
from bottleneck_doctor.runtime.loader.shadow import shadow_of

DATA = TensorDataset(torch.arange(22))


class Grouped(BatchSampler):
    """A sampler of batches of somebody's own."""


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_joined_batches_hold_what_the_others_do(times: int, drop_last: bool) -> None:
    plain = BatchSampler(SequentialSampler(DATA), 4, drop_last)
    joined = Joined(plain, times)
    made = list(joined)
    assert [index for batch in made for index in batch] == [index for batch in plain for index in batch]
    assert len(made) == len(joined)
    assert all(len(batch) == 4 * times for batch in made[:-1])


def test_a_copy_of_the_loader_has_larger_batches() -> None:
    loader: Any = DataLoader(DATA, batch_size=4)
    shadow = shadow_of(loader, {"batch_size": 8})
    BatchSize.shape(8, shadow)
    assert [len(batch) for (batch,) in shadow] == [8, 8, 6]
    assert (shadow.batch_size, loader.batch_size, len(loader)) == (8, 4, 6)
    untouched = copy.copy(loader)
    BatchSize.shape(6, untouched)
    assert [len(batch) for (batch,) in untouched] == [4, 4, 4, 4, 4, 2]


def test_loaders_that_make_no_batches_by_a_size() -> None:
    assert obstacle(DataLoader(DATA, batch_size=4)) == ""
    given: list[dict[str, Any]] = [
        {"batch_size": None},
        {"batch_sampler": Grouped(SequentialSampler(DATA), 4, drop_last=False)},
    ]
    for each in given:
        assert "by a size" in obstacle(DataLoader(DATA, **each))
