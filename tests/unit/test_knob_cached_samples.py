"""`cached_samples`: which samples are the same each time, what a list of them takes, and that a window has them."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.test_fixes import BARE, FOUND
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Preparation, Setting
from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue
from bottleneck_doctor.runtime.knobs import GuestContext, Refused, _in_memory, cached_samples
from bottleneck_doctor.runtime.knobs._samples import alike
from bottleneck_doctor.runtime.knobs.cached_samples import CachedSamples, bytes_of, look
from bottleneck_doctor.runtime.loader.feed import Feed, IndexStream
from bottleneck_doctor.runtime.loop.steps import Steps

FIX = next(fix for fix in catalogue() if fix.id == "cached-samples")
COUNT = 103
ON: Setting = {"cached_samples": True}


class Rows(Dataset[Any]):
    """Samples that are worked out, and are the same each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        self.asked += 1
        return {"x": torch.full((250,), float(index)), "y": np.float32(index), "name": f"row {index}"}


class OfTorch(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.full((2,), float(index)) if torch.rand(()) < 2 else index


class OfNumpy(Rows):
    def __getitem__(self, index: int) -> Any:
        np.random.random()
        return index


class OfPython(Rows):
    def __getitem__(self, index: int) -> Any:
        random.random()
        return index


class HardlyEver(Rows):
    """Draws from a generator of its own, and does something else to one sample of a thousand."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = Flips(0.001)

    def __getitem__(self, index: int) -> Any:
        return self.transform(torch.full((3,), float(index)))


class Flips:
    def __init__(self, often: float) -> None:
        self.often = often
        self.generator = random.Random(3)

    def __call__(self, row: Any) -> Any:
        return -row if self.generator.random() < self.often else row


class OfTheSystem(Rows):
    """Draws from what has no state."""

    def __getitem__(self, index: int) -> Any:
        return random.SystemRandom().random()


class Opaque:
    """Nothing is known of it."""


class Opaques(Rows):
    def __getitem__(self, index: int) -> Any:
        return Opaque()


class Failing(Rows):
    def __getitem__(self, index: int) -> Any:
        raise OSError("no such file")


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield torch.zeros(1)


def spoiling(samples: list[Any]) -> Any:
    for sample in samples:
        sample.pop("name")
    return default_collate(samples)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    cached_samples._source.clear()
    cached_samples._prepared.clear()
    yield
    cached_samples._source.clear()
    cached_samples._prepared.clear()


LOADERS: dict[str, Any] = {
    "own rows": lambda: DataLoader(Rows(), batch_size=4),
    "a subset": lambda: DataLoader(Subset(Rows(), range(3, 60)), batch_size=4, shuffle=True),
    "own collate": lambda: DataLoader(Rows(), batch_size=4, collate_fn=lambda rows: [row["x"] for row in rows]),
}


@pytest.mark.parametrize("name", LOADERS)
def test_samples_that_are_the_same_each_time(name: str) -> None:
    loader = LOADERS[name]()
    told = look(loader)
    assert told["obstacle"] == ""
    assert told["samples"] == len(loader.dataset)
    assert 1000 * told["samples"] < told["bytes"] < 2000 * told["samples"]
    assert 0 < told["seconds"] < 1


REFUSED: dict[str, tuple[Any, str]] = {
    "iterable": (lambda: DataLoader(Endless(), batch_size=4), "iterable"),
    "whole batches": (lambda: DataLoader(Rows(), batch_size=None), "whole batches"),
    "tensors": (lambda: DataLoader(TensorDataset(torch.zeros(9)), batch_size=4), "already on"),
    "a list": (lambda: DataLoader([1, 2, 3], batch_size=2), "already on"),  # type: ignore[arg-type]
    "a part of a list": (lambda: DataLoader(Subset([1, 2, 3], [0, 1]), batch_size=2), "already on"),  # type: ignore[arg-type]
    "drawn by torch": (lambda: DataLoader(OfTorch(), batch_size=4), "drawn at random"),
    "drawn by numpy": (lambda: DataLoader(OfNumpy(), batch_size=4), "drawn at random"),
    "drawn by Python": (lambda: DataLoader(OfPython(), batch_size=4), "drawn at random"),
    "drawn by itself": (lambda: DataLoader(HardlyEver(), batch_size=4), "drawn at random"),
    "drawn by the system": (lambda: DataLoader(OfTheSystem(), batch_size=4), "not the same each time"),
    "unknown": (lambda: DataLoader(Opaques(), batch_size=4), "can't be compared (`Opaque`)"),
    "failing": (lambda: DataLoader(Failing(), batch_size=4), "failed (OSError)"),
    "spoilt": (lambda: DataLoader(Rows(), batch_size=4, collate_fn=spoiling), "`collate_fn` changes"),
}


def _drawn_so_far() -> list[int]:
    state: Any = np.random.get_state()
    return list(state[1])


@pytest.mark.parametrize("name", REFUSED)
def test_other_samples_are_left_alone(name: str) -> None:
    make, reason = REFUSED[name]
    loader = make()
    states = random.getstate(), torch.get_rng_state(), _drawn_so_far()
    assert reason in look(loader)["obstacle"]
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert _drawn_so_far() == states[2]


def test_what_does_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Rows(), batch_size=4)
    needed = look(loader)["bytes"]
    monkeypatch.setattr(_in_memory, "host_free", lambda: 2.1 * needed)
    assert look(loader)["obstacle"] == ""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert "all samples together would take" in look(loader)["obstacle"], "each process has a list of its own"


class Cut(Dataset[Any]):
    """Small pieces of pictures that were prepared as a whole, each of 3 MB."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        picture = torch.full((3, 512, 512), float(index))
        flat = np.zeros((1024, 512), np.float32)
        return picture[:, :8, :8], flat[:4, :4], index


class Parts(Dataset[Any]):
    """Rows of one tensor that the dataset holds."""

    def __init__(self) -> None:
        self.whole = torch.zeros(COUNT, 1000)

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return self.whole[index], (index,)


def test_a_piece_keeps_all_that_it_was_cut_from(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Cut(), batch_size=4)
    found = look(loader)
    each = 4 * (3 * 512 * 512 + 1024 * 512)
    assert COUNT * each <= found["bytes"] <= COUNT * (each + 2000)
    monkeypatch.setattr(_in_memory, "host_free", lambda: COUNT * each)
    assert "all samples together would take about" in look(loader)["obstacle"]
    # Some of them take all the memory that a window's samples should, so there are no copies.
    monkeypatch.setattr(cached_samples, "FILLED", (4, 16))
    assert len(cached_samples.filled(Cut(), COUNT)) == 16
    # A row of what the dataset holds takes no memory but its own, which is counted.
    assert look(DataLoader(Parts(), batch_size=4))["bytes"] < COUNT * 5000


def test_samples_that_take_too_much_memory_make_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Cut(), batch_size=4)
    assert look(loader)["obstacle"] == ""

    class Short:
        def __init__(self, device: str) -> None:
            assert device == "cpu"

        def short(self) -> str:
            return "the memory of the process grew"

    monkeypatch.setattr(cached_samples, "MemoryLimit", Short)
    feed = Feed(loader, ON, IndexStream(loader._index_sampler))
    assert CachedSamples().effect_on_loading(True, feed) is False


def test_a_window_has_samples_of_the_dataset_and_asks_it_no_more() -> None:
    data = Rows()
    loader = DataLoader(data, batch_size=4, shuffle=True)
    before = dict(vars(loader))
    assert look(loader)["obstacle"] == ""
    feed = Feed(loader, ON, IndexStream(loader._index_sampler))
    asked = data.asked
    feed.open()
    try:
        batches = [feed.next() for _ in range(40)]
    finally:
        feed.close()
    assert data.asked == asked
    assert CachedSamples().effect_on_loading(True, feed) is True
    for batch in batches:
        assert batch["x"][:, 0].tolist() == batch["y"].tolist()
        assert batch["name"] == [f"row {row:.0f}" for row in batch["y"].tolist()]
    assert len({name for batch in batches for name in batch["name"]}) > 50
    again = Feed(loader, ON, IndexStream(loader._index_sampler))
    assert again.loader.dataset is feed.loader.dataset, "the next window prepares nothing"
    assert data.asked == asked
    assert vars(loader) == before


def test_a_loader_of_every_epoch_is_left_alone() -> None:
    context = GuestContext(Steps(), "cpu")
    CachedSamples().apply(True, context)
    context.made_anew = True
    with pytest.raises(Refused, match="a new loader for every epoch"):
        CachedSamples().apply(True, context)


def test_workers_have_them_too() -> None:
    loader = DataLoader(Rows(), batch_size=4)
    look(loader)
    feed = Feed(loader, {**ON, "num_workers": 1}, IndexStream(loader._index_sampler))
    feed.open()
    try:
        assert feed.next()["x"].shape == (4, 250)
    finally:
        feed.close()


def test_samples_take_as_much_memory_as_no_cache_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_samples, "FILLED", (4, 6))
    monkeypatch.setattr(cached_samples, "SPREAD_BYTES", 30_000)
    samples = cached_samples.filled(Rows(), COUNT)
    assert 30_000 <= sum(map(bytes_of, samples)) < 32_000
    assert len({sample["x"].data_ptr() for sample in samples}) == len(samples) > 6
    assert len({sample["name"] for sample in samples}) == 6


def test_without_a_dataset_nothing_takes_effect() -> None:
    data = Rows()
    loader = DataLoader(data, batch_size=4)
    look(loader)
    other = DataLoader(TensorDataset(torch.zeros(9)), batch_size=4)
    del data, loader
    gc.collect()
    feed = Feed(other, ON, IndexStream(other._index_sampler))
    assert CachedSamples().effect_on_loading(True, feed) is False


def test_samples_are_compared_by_their_bytes() -> None:
    nan, picture = torch.tensor(float("nan")), np.zeros((2, 3), np.uint8)
    assert alike(
        [nan, picture, "a", None, 2.5, float("nan")], [nan.clone(), picture.copy(), "a", None, 2.5, float("nan")]
    )
    column = torch.arange(12).view(4, 3)[:, 0]
    assert alike(column[:1], column[:1].clone().as_strided((1,), (3,))), "one element, at whatever stride"
    assert alike(column[:0], column[:0])
    assert alike((1, 2), (1, 2, 3)) is False
    assert alike({"a": 1}, {"b": 1}) is False
    assert alike(picture, picture.astype(np.int8)) is False
    assert alike(1, True) is False
    assert alike([Opaque()], [Opaque()]) is None


def test_it_is_no_part_of_a_loop_without_a_loader() -> None:
    assert CachedSamples.facts(Steps(), "cpu") is None
    assert FIX.propose(BARE) == NotApplicable("no torch DataLoader feeds this loop")


# -- the fix -----------------------------------------------------------------------------------------------------------

SEEN = {"cached_samples": {"obstacle": "", "samples": 60000, "bytes": 190 << 20, "seconds": 11.5}}
SAME = replace(FOUND, facts=SEEN, num_workers=0, made_anew=False)


def reason(**told: Any) -> str:
    offered = FIX.propose(replace(SAME, **told))
    assert isinstance(offered, NotApplicable)
    return offered.reason


def test_it_is_offered_without_workers_where_there_are_none() -> None:
    assert FIX.propose(SAME) == Offer((ON,))
    assert knobs.preparation(ON, SAME) == Preparation(samples=60000, seconds=11.5, bytes=190 << 20)
    assert knobs.preparation({"num_workers": 2}, SAME) is None


def test_workers_keep_the_list_only_where_they_share_it() -> None:
    alone: Setting = {**ON, "num_workers": 0}
    assert FIX.propose(replace(SAME, num_workers=2, start_method="fork")) == Offer((alone, ON))
    assert FIX.propose(replace(SAME, num_workers=2, start_method="spawn")) == Offer((alone,))


def test_it_is_not_offered_where_it_would_not_pay() -> None:
    assert reason(facts={}) == "how this dataset prepares its samples could not be seen"
    assert reason(facts={"cached_samples": {"obstacle": "they differ"}}) == "they differ"
    assert "a new loader for every epoch" in reason(made_anew=True)
    # An epoch takes ten seconds, and preparing eleven and a half.
    assert reason(run_epochs=2) == "the run has 2 epochs, and preparing all samples first would take as long as 1.1"
    assert "before any sample is needed again" in reason(run_steps=150, epoch_batches=100)
    assert "before any sample is needed again" in reason(run_epochs=1, step_seconds=[100.0] * 8)
    assert isinstance(FIX.propose(replace(SAME, run_epochs=3)), Offer)
    assert isinstance(FIX.propose(replace(SAME, run_epochs=2, step_seconds=[100.0] * 8)), Offer)
    assert isinstance(FIX.propose(replace(SAME, run_steps=900, epoch_batches=100)), Offer)
