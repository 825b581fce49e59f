"""`batched_fetch`: which loaders can take whole batches, and that these are the same to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.test_fixes import BARE, FOUND
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue
from bottleneck_doctor.runtime.knobs import GuestContext, batched_fetch
from bottleneck_doctor.runtime.knobs.batched_fetch import BatchedFetch, obstacle, same_batch
from bottleneck_doctor.runtime.loader.feed import Feed, IndexStream
from bottleneck_doctor.runtime.loop.steps import Steps

FIX = next(fix for fix in catalogue() if fix.id == "batched-fetch")
COUNT = 103
ON: Setting = {"batched_fetch": True}

TENSORS = TensorDataset(torch.randn(COUNT, 3, 4), torch.arange(COUNT), torch.full((COUNT, 2), float("nan")))


class Arrays(Dataset[Any]):
    """Rows of arrays, as a dictionary."""

    def __init__(self) -> None:
        self.x = np.random.default_rng(0).standard_normal((COUNT, 5)).astype(np.float32)
        self.y = np.arange(COUNT)
        self.z = torch.randn(COUNT, 2)

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, i: int) -> Any:
        """One row."""
        x = self.x[i]
        return {"x": x, "both": (self.y[i], self.z[i])}


class Augmented(Arrays):
    def __getitem__(self, i: int) -> Any:
        return self.x[i] + 1, self.y[i]


class Labelled(Arrays):
    """Its labels are a list, which takes no list of indices."""

    def __init__(self) -> None:
        super().__init__()
        self.y = list(range(COUNT))  # type: ignore[assignment]

    def __getitem__(self, i: int) -> Any:
        return self.x[i], self.y[i]


class Neighbours(Arrays):
    """Where a list of indices means something else than each of them."""

    def __getitem__(self, i: int) -> Any:
        return self.x[i : i + 1]


class Lazy(Arrays):
    @property
    def w(self) -> Any:
        return np.random.default_rng().random(COUNT)

    def __getitem__(self, i: int) -> Any:
        return self.w[i]


class Columns(Arrays):
    """One row, of whatever `x` is."""

    def __getitem__(self, i: int) -> Any:
        return self.x[i]


class Fetching(Arrays):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in indices]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield torch.zeros(1)


class Own(Sampler[Any]):
    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[Any]:
        return iter(torch.randperm(COUNT))


def alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(same_batch, one, other))


def batches(loader: DataLoader[Any], setting: Setting, count: int) -> list[Any]:
    torch.manual_seed(5)
    feed = Feed(loader, setting, IndexStream(loader._index_sampler))
    feed.open()
    try:
        return [feed.next() for _ in range(count)]
    finally:
        feed.close()


LOADERS: dict[str, Any] = {
    "tensors": lambda: DataLoader(TENSORS, batch_size=8, shuffle=True),
    "drop last": lambda: DataLoader(TENSORS, batch_size=40, drop_last=True),
    "subset": lambda: DataLoader(Subset(Subset(TENSORS, range(50)), [3, 1, 44, 7, 7]), batch_size=2),
    "arrays": lambda: DataLoader(Arrays(), batch_size=8, shuffle=True),
    "subset of arrays": lambda: DataLoader(Subset(Arrays(), range(9, 60)), batch_size=8),
    "a sampler of numpy's numbers": lambda: DataLoader(
        TENSORS, batch_size=8, sampler=SubsetRandomSampler(list(np.arange(30)))
    ),
    "a sampler of batches": lambda: DataLoader(
        TENSORS, batch_sampler=BatchSampler(SubsetRandomSampler(range(30)), 7, False)
    ),
}


@pytest.mark.parametrize("name", LOADERS)
def test_whole_batches_are_the_same_to_the_last_bit(name: str) -> None:
    loader = LOADERS[name]()
    assert obstacle(loader) == ""
    before = dict(vars(loader))
    assert alike(batches(loader, {}, 30), batches(loader, ON, 30)), "beyond the end of an epoch too"
    assert vars(loader) == before


def test_real_epochs_in_a_worker() -> None:
    loader: DataLoader[Any] = DataLoader(Arrays(), batch_size=8, shuffle=True, drop_last=True)
    epochs = []
    settings: list[Setting] = [{}, ON, {**ON, "num_workers": 1}]
    for setting in settings:
        torch.manual_seed(5)
        feed = Feed(loader, setting, None)
        feed.open()
        epoch = []
        try:
            while True:
                epoch.append(feed.next())
        except StopIteration:
            pass
        assert BatchedFetch().effect_on_loading(True, feed) is bool(setting)
        feed.close()
        epochs.append(epoch)
    assert len(epochs[0]) == COUNT // 8
    assert alike(epochs[0], epochs[1])
    assert alike(epochs[0], epochs[2])


REFUSED: dict[str, tuple[Any, str]] = {
    "iterable": (lambda: DataLoader(Endless(), batch_size=4), "iterable"),
    "whole batches already": (lambda: DataLoader(TENSORS, batch_size=None), "already on"),
    "by __getitems__": (lambda: DataLoader(Fetching(), batch_size=4), "already on: `Fetching`"),
    "by __getitems__ in a subset": (lambda: DataLoader(Subset(Fetching(), range(5)), batch_size=4), "already on"),
    "own collate": (lambda: DataLoader(TENSORS, batch_size=4, collate_fn=lambda rows: rows), "`collate_fn`"),
    "own sampler": (lambda: DataLoader(TENSORS, batch_size=4, sampler=Own()), "sampler"),
    "a sampler of tensors": (
        lambda: DataLoader(TENSORS, batch_size=4, sampler=SubsetRandomSampler([torch.tensor(1)])),  # type: ignore[list-item]
        "sampler",
    ),
    "one row": (lambda: DataLoader(TENSORS), "one row"),
    "a sum": (lambda: DataLoader(Augmented(), batch_size=4), "`Augmented` does more"),
    "a list": (lambda: DataLoader(Labelled(), batch_size=4), "`Labelled` does more"),
    "a slice": (lambda: DataLoader(Neighbours(), batch_size=4), "`Neighbours` does more"),
    "a property": (lambda: DataLoader(Lazy(), batch_size=4), "`Lazy` does more"),
    "indices that are tensors": (
        lambda: DataLoader(Subset(TENSORS, list(torch.arange(9))), batch_size=4),
        "`Subset`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_loaders_are_left_alone(name: str) -> None:
    make, reason = REFUSED[name]
    loader = make()
    assert reason in obstacle(loader)
    before = dict(vars(loader))
    BatchedFetch.shape(True, loader)
    assert vars(loader) == before


def test_what_comes_out_different_is_refused() -> None:
    """A tensor whose rows lie apart: stacked they are dense, and taken by one index they lie as they did."""
    data = Columns()
    data.x = torch.randn(2, COUNT, 4).permute(1, 2, 0)  # type: ignore[assignment]
    wanted = "`Columns` returns other batches for a list of indices than row by row"
    assert obstacle(DataLoader(data, batch_size=4)) == wanted
    strings = Columns()
    strings.x = np.array(["a"] * COUNT)
    assert obstacle(DataLoader(strings, batch_size=4)) == wanted


NAN = torch.tensor([float("nan"), 1.0])


def test_batches_are_compared_by_bits() -> None:
    assert same_batch([NAN, {"a": NAN}], [NAN.clone(), {"a": NAN.clone()}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NAN, NAN.double()),
        (torch.zeros(2), -torch.zeros(2)),
        (torch.zeros(2, 3), torch.zeros(3, 2).T),
        (torch.zeros(2), torch.zeros(2, requires_grad=True)),
        ([NAN], (NAN,)),
        ([NAN], [NAN, NAN]),
        ({"a": NAN}, {"b": NAN}),
        ("text", "text"),
    ],
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert not same_batch(one, other)


def test_the_effect_is_seen_on_the_loader() -> None:
    loader: DataLoader[Any] = DataLoader(TENSORS, batch_size=8)
    context = GuestContext(Steps(), "cpu")
    assert BatchedFetch().effect(True, context) is None
    context.feed = Feed(loader, ON, None)
    assert BatchedFetch().effect(True, context) is True
    context.feed = Feed(DataLoader(Augmented(), batch_size=8), ON, None)
    assert BatchedFetch().effect(True, context) is False


def test_it_is_offered_where_the_guest_sees_that_it_can_be() -> None:
    obstacles = {"batched_fetch": BatchedFetch.obstacle(Steps(), DataLoader(TENSORS, batch_size=8)) or ""}
    assert FIX.propose(replace(FOUND, obstacles=obstacles)) == Offer((ON,))
    for found, reason in (
        (replace(FOUND, obstacles={"batched_fetch": "a batch is one row"}), "a batch is one row"),
        (FOUND, "was not seen"),
        (BARE, "no torch DataLoader"),
    ):
        proposal = FIX.propose(found)
        assert isinstance(proposal, NotApplicable)
        assert reason in proposal.reason
    assert BatchedFetch.obstacle(Steps()) is None


def test_a_dataset_whose_source_is_nowhere() -> None:
    scope: dict[str, Any] = {"Arrays": Arrays}
    exec("class Nowhere(Arrays):\n    def __getitem__(self, i):\n        return self.x[i]", scope)
    assert "does more" in obstacle(DataLoader(scope["Nowhere"](), batch_size=4))


def test_few_large_rows_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def compared(dataset: Any, indices: list[int]) -> bool:
        asked.append(len(indices))
        return True

    monkeypatch.setattr(batched_fetch, "_same_for", compared)
    for rows, wanted in ((torch.zeros(9, 4 << 20, dtype=torch.uint8), 4), (torch.zeros(9, 4), 64)):
        asked.clear()
        assert obstacle(DataLoader(TensorDataset(rows), batch_size=64)) == ""
        assert asked == [1, 2, wanted]
