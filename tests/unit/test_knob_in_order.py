"""Which loaders may hand over their batches as they are ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from bottleneck_doctor.runtime.knobs.in_order import NAME, obstacle

DATA = TensorDataset(torch.arange(12.0))
HAS_IT = hasattr(DataLoader(DATA), NAME)
known = pytest.mark.skipif(not HAS_IT, reason="this torch has no `in_order`")


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(4)


class Sorted(RandomSampler):
    """A sampler of somebody's own: it may begin with what is easy."""


class Grouped(BatchSampler):
    """The same, of batches."""


def loader(**given: Any) -> DataLoader[Any]:
    return DataLoader(DATA, **given)


@known
@pytest.mark.parametrize(
    "given",
    [
        {"shuffle": True},
        {"sampler": SubsetRandomSampler([1, 2])},
        {"sampler": WeightedRandomSampler([1.0] * 12, 12)},
        {"sampler": DistributedSampler(DATA, num_replicas=2, rank=0)},
        {"batch_sampler": BatchSampler(RandomSampler(DATA), 4, drop_last=False)},
        {"batch_size": None, "sampler": RandomSampler(DATA)},
    ],
)
def test_shuffled(given: dict[str, Any]) -> None:
    assert obstacle(loader(**given)) == ""


@known
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sampler": DistributedSampler(DATA, num_replicas=2, rank=0, shuffle=False)},
        {"sampler": Sorted(DATA)},
        {"batch_sampler": Grouped(RandomSampler(DATA), 4, drop_last=False)},
        {"batch_sampler": BatchSampler(SequentialSampler(DATA), 4, drop_last=False)},
    ],
)
def test_in_an_order_that_may_have_a_meaning(given: dict[str, Any]) -> None:
    assert "may have a meaning" in obstacle(loader(**given))


@known
def test_iterable_and_already_on() -> None:
    assert "iterable" in obstacle(DataLoader(Stream()))
    assert obstacle(loader(shuffle=True, in_order=False)).startswith("already on")


@pytest.mark.skipif(HAS_IT, reason="this torch has `in_order`")
def test_an_older_torch() -> None:
    assert obstacle(loader(shuffle=True)).startswith("`in_order` came with torch 2.6")
