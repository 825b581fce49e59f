"""Which transforms are found and timed under which datasets, and that the user's objects are as they were afterwards.

Batches are made by torch's own fetchers, in this process.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, Subset

from bottleneck_doctor.runtime.modes import loading as loading_module
from bottleneck_doctor.runtime.modes import timed
from bottleneck_doctor.runtime.modes.loading import LoadingRecorder, _places
from bottleneck_doctor.runtime.modes.reach import find
from bottleneck_doctor.runtime.modes.sites import fetch_site
from bottleneck_doctor.runtime.modes.transforms import Chains
from bottleneck_doctor.runtime.process.uses import uses_of


class Seconds:
    """A clock that only naps move on, so that shares come out exactly."""

    now = 0.0


def nap(sample: Any) -> Any:
    Seconds.now += 1
    return sample


def rest(sample: Any) -> Any:
    Seconds.now += 1
    return sample


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (loading_module, timed):
        monkeypatch.setattr(module, "now", lambda: Seconds.now)


class Nap:
    def __call__(self, sample: Any) -> Any:
        return nap(sample)


class NapModule(nn.Module):
    def forward(self, sample: Any) -> Any:
        return nap(sample)


class Compose:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, sample: Any) -> Any:
        for transform in self.transforms:
            sample = transform(sample)
        return sample


class Rows(Dataset[Any]):
    """Each sample takes a nap of its own, and its transform."""

    def __init__(self, transform: Any = None, count: int = 8) -> None:
        self.count = count
        self.transform = transform

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        nap(index)
        row = torch.full((2,), float(index))
        return row if self.transform is None else self.transform(row)


class Transformed(Dataset[Any]):
    def __init__(self, inner: Any, fn: Any) -> None:
        self.inner, self.fn = inner, fn

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        return self.fn(self.inner[index])


class Stream(IterableDataset[Any]):
    def __init__(self, transform: Any) -> None:
        self.tf = transform

    def __iter__(self) -> Iterator[Any]:
        for index in range(8):
            nap(index)
            yield self.tf(torch.tensor(float(index)))


def told(dataset: Any, **options: Any) -> dict[str, Any]:
    """What is told of loading all of a dataset in batches of four."""
    loader = DataLoader(dataset, batch_size=4, **options)
    recorder = LoadingRecorder()
    recorder.apply(loader)
    try:
        iterator = iter(loader)
        feed = type("Feed", (), {"iterator": iterator})()
        while True:
            recorder.asked(feed)
            if next(iterator, None) is None:
                break
            recorder.arrived(counts=True)
        found: dict[str, Any] = recorder.detail(loader, [(0.0, 1e9)], None)
    finally:
        recorder.revert()
    assert found["loading"], found
    loading: dict[str, Any] = found["loading"]
    return loading


def shares(loading: dict[str, Any]) -> dict[str, float]:
    fetched = sum(loading["fetch_seconds"])
    return {each["name"]: each["seconds"] / fetched for each in loading["transforms"]}


TO = Nap()
MODULE = NapModule()


@pytest.mark.parametrize(
    ("dataset", "name", "share"),
    [
        (Rows(nap), "nap", 0.5),
        (Rows(lambda row: nap(row)), "<lambda>", 0.5),
        (Rows(functools.partial(nap)), "nap", 0.5),
        (Rows(Nap()), "Nap", 0.5),
        (Rows(NapModule()), "NapModule", 0.5),
        (Rows(Compose(NapModule())), "NapModule", 0.5),
        (Rows(functools.partial(Compose(nap))), "nap", 0.5),
        (Subset(Rows(Compose(Nap())), [0, 1, 2, 3]), "Nap", 0.5),
        (Transformed(Subset(Rows(), [0, 1, 2, 3]), Nap()), "Nap", 0.5),
        (Transformed(Transformed(Subset(Subset(Rows(), range(8)), range(8)), rest), rest), "rest", 2 / 3),
        (ConcatDataset([Rows(TO, 4), Rows(TO, 4)]), "Nap", 0.5),
        (ConcatDataset([Rows(None, 1) for _ in range(12)] + [Rows(Nap(), 4)]), "Nap", 4 / (4 + 16)),
        (ChainDataset([Stream(nap)]), "nap", 0.5),
    ],
)
def test_share_of_a_transform_under_all_wrappers(dataset: Any, name: str, share: float) -> None:
    assert shares(told(dataset)) == {name: pytest.approx(share)}


def test_torchvision_datasets_wrap_their_transforms_twice() -> None:
    vision = pytest.importorskip("torchvision.datasets.vision")

    base: Any = vision.VisionDataset

    class ByOne(base):  # type: ignore[misc]  # torchvision ships no types
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Any:
            nap(index)
            return self.transform(torch.ones(1)), self.target_transform(1)

    class ByBoth(ByOne):
        def __getitem__(self, index: int) -> Any:
            nap(index)
            return self.transforms(torch.ones(1), 1)

    for kind in (ByOne, ByBoth):
        dataset = kind(root="", transform=Nap(), target_transform=rest)
        before = dict(vars(dataset)), dict(vars(dataset.transforms))
        assert shares(told(dataset)) == {"Nap": pytest.approx(1 / 3), "rest": pytest.approx(1 / 3)}
        assert (dict(vars(dataset)), dict(vars(dataset.transforms))) == before


def test_transforms_in_lists_dictionaries_and_the_class() -> None:
    class Several(Rows):
        steps = (nap,)
        to_row = Nap()

        def __init__(self) -> None:
            super().__init__()
            self.augmentations = [NapModule()]
            self._format_kwargs = {"transform": rest, "columns": None}

        def __getitem__(self, index: int) -> Any:
            row = self.to_row(super().__getitem__(index))
            for each in self.augmentations:
                row = each(row)
            return self.format(row)

        def format(self, row: Any) -> Any:
            kwargs: dict[str, Any] = self._format_kwargs
            return kwargs["transform"](row)

    dataset = Several()
    found = shares(told(dataset))
    assert set(found) == {"NapModule", "rest", "Nap"}
    assert all(each == pytest.approx(0.25) for each in found.values())
    assert "to_row" not in vars(dataset)
    assert type(dataset.augmentations[0]) is NapModule
    assert dataset._format_kwargs["transform"] is rest


def test_time_within_another_transform_counts_once() -> None:
    class Twice:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __call__(self, row: Any) -> Any:
            return nap(self.inner(self.inner(row)))

    loading = told(Rows(Twice(Nap())))
    assert shares(loading) == {"Twice": pytest.approx(0.25), "Nap": pytest.approx(0.5)}
    assert [each["holds"] for each in loading["transforms"]] == [True, False]


def test_what_reads_or_generates_is_no_transform() -> None:
    class Files(Rows):
        def __init__(self) -> None:
            super().__init__(nap)
            self.loader = self.opener = self.convert = rest
            self.lines: Any = lambda row: (nap(each) for each in [row])
            self.model = nn.Linear(2, 2)
            self.connection = sqlite3.connect(":memory:", check_same_thread=False)
            self.own = self.pick

        def pick(self, row: Any) -> Any:
            return row

        def __getitem__(self, index: int) -> Any:
            self.loader(torch.ones(1))
            self.opener("a path")
            self.convert("a path")
            with self.connection:
                self.connection.execute("SELECT 1")
            return self.own(self.model(next(self.lines(self.transform(torch.ones(2)))))).detach()

    found = {name: share for name, share in shares(told(Files())).items() if share > 0}
    assert found == {"nap": pytest.approx(0.2)}


def test_a_transform_that_a_collate_function_calls_is_no_part_of_fetching() -> None:
    chain = Compose(nap)

    class Gather:
        def __init__(self) -> None:
            self.transform = chain

        def __call__(self, rows: Any) -> Any:
            return self.transform(torch.stack(rows))

    loading = told(Rows(chain), collate_fn=Gather())
    assert shares(loading) == {"nap": pytest.approx(0.5)}
    assert (loading["collate_name"], loading["collate_module"]) == ("Gather", __name__)


@pytest.mark.parametrize(
    ("collate", "name"),
    [
        (None, ("default_collate", "torch.utils.data._utils.collate")),
        (functools.partial(torch.stack, dim=0), ("stack", "torch")),
        (nap, ("nap", __name__)),
        (Compose(torch.stack).__call__, ("Compose.__call__", __name__)),
        (Compose(torch.stack), ("Compose", __name__)),
    ],
)
def test_the_collate_function_is_named(collate: Any, name: tuple[str, str]) -> None:
    loading = told(Rows(), collate_fn=collate)
    assert (loading["collate_name"], loading["collate_module"]) == name


def test_objects_are_as_they_were_and_stand_for_themselves_meanwhile() -> None:
    class Sized(Nap):
        strength = 3

        def __len__(self) -> int:
            return 7

        def __enter__(self) -> str:
            return "in"

        def __exit__(self, *raised: Any) -> None:
            pass

    transform = Sized()
    dataset = Rows(transform)
    module = NapModule()
    module.eval()
    wrapper = Transformed(dataset, module)
    before = list(vars(dataset)), list(vars(wrapper))
    chains = Chains()
    chains.time(wrapper)
    proxy = dataset.transform
    assert proxy is not transform
    assert isinstance(proxy, Sized)
    assert (proxy == transform, transform == proxy, hash(proxy) == hash(transform)) == (True, True, True)
    assert (len(proxy), proxy.strength, bool(proxy)) == (7, 3, True)
    with proxy as entered:
        assert entered == "in"
    assert not hasattr(wrapper.fn, "__len__")
    assert wrapper.fn.training is False
    wrapper.fn.train()
    assert module.training
    del wrapper.fn.training
    assert type(pickle.loads(pickle.dumps(Transformed([1], wrapper.fn))).fn) is NapModule
    chains.revert()
    assert dataset.transform is transform
    assert wrapper.fn is module
    assert (list(vars(dataset)), list(vars(wrapper))) == before


def test_what_the_user_puts_there_meanwhile_stays() -> None:
    chain = Compose(nap, rest)
    dataset, other = Rows(nap), Rows(chain)
    chains = Chains()
    chains.time(dataset, other)
    dataset.transform = rest
    chain.transforms.insert(0, len)
    chains.revert()
    assert dataset.transform is rest
    assert chain.transforms == [len, nap, rest]
    assert not any("Timed" in type(each).__name__ for each in chain.transforms)


def test_what_cannot_be_replaced_is_left() -> None:
    class Slots:
        __slots__ = ("transform",)

        def __init__(self) -> None:
            self.transform = Nap()

        def __getitem__(self, index: int) -> Any:
            return self.transform(torch.ones(1))

        def __len__(self) -> int:
            return 4

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        transform: Any

        def __getitem__(self, index: int) -> Any:
            return self.transform(torch.ones(1))

        def __len__(self) -> int:
            return 4

    class Property(Rows):
        def __init__(self) -> None:
            self.count = 4
            self._hidden = rest

        @property
        def transform(self) -> Any:
            return self._hidden

        @transform.setter
        def transform(self, value: Any) -> None:
            raise AssertionError

    class Hostile(Rows):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise RuntimeError(name)

    assert shares(told(Slots())) == {}
    frozen = Frozen(nap)
    assert shares(told(frozen)) == {}
    assert hash(frozen) == hash(Frozen(nap))
    assert shares(told(Property())) == {}, "`_hidden` is neither called where it is loaded nor named as a transform"
    assert shares(told(Hostile(nap))) == {"nap": pytest.approx(0.5)}


def test_a_dataset_of_a_million_paths_is_looked_through_at_once() -> None:
    dataset = Rows(Nap())
    paths = [(f"/data/{number}.jpg", number % 10) for number in range(1_000_000)]
    dataset.samples, dataset.by_name = paths, dict(paths)  # type: ignore[attr-defined]
    began = time.monotonic()
    found = find((ConcatDataset([Subset(dataset, range(8))] * 3),))
    assert time.monotonic() - began < 0.2
    assert [type(each) for group in found.groups for each in group.elements] == [Nap]


def test_threads_of_a_dataset_do_not_take_from_each_other() -> None:
    class Threads(Rows):
        def __getitem__(self, index: int) -> Any:
            worker = threading.Thread(target=self.transform, args=(torch.ones(1),))
            worker.start()
            worker.join()
            return torch.ones(1)

    loading = told(Threads(nap))
    assert shares(loading) == {"nap": 1.0}


def test_of_several_methods_that_which_does_the_work_is_named() -> None:
    class Heavy(Rows):
        def __getitem__(self, index: int) -> Any:
            return nap(super().__getitem__(index))

    class Wrapper(Transformed):
        def __getitem__(self, index: int) -> Any:
            return self.fn(self.inner[index])

    class Busy(Transformed):
        def __getitem__(self, index: int) -> Any:
            nap(nap(nap(nap(0))))
            return self.fn(self.inner[index])

    def line(kind: type) -> int:
        return int(vars(kind)["__getitem__"].__code__.co_firstlineno)

    original = vars(Heavy)["__getitem__"]
    for dataset, kind in (
        (Wrapper(Subset(Heavy(), range(4)), nap), Heavy),
        (Busy(Subset(Rows(), range(4)), nap), Busy),
    ):
        site = told(dataset)["fetch_site"]
        assert (site["file"], site["line"]) == (__file__, line(kind))
    assert vars(Heavy)["__getitem__"] is original
    assert told(Subset(Wrapper(torch.ones(8), nap), range(4)))["fetch_site"]["line"] == line(Wrapper)


def test_the_users_method_is_found_under_unknown_wrappers() -> None:
    stack = torch.utils.data.StackDataset(first=Rows())
    hidden = type("Hidden", (Dataset,), {"__module__": "torch.utils.data"})()
    hidden.whatever = [Subset(Rows(), [0])]
    wrappers: list[Any] = [stack, hidden]
    for dataset in (*wrappers, ConcatDataset([torch.utils.data.TensorDataset(torch.ones(2)), Rows()])):
        site = fetch_site(dataset)
        assert site is not None
        assert site.line == vars(Rows)["__getitem__"].__code__.co_firstlineno


class Missing:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def test_attributes_that_methods_call() -> None:
    class Uses(Missing):
        def __getitem__(self, index: int) -> Any:
            return [self.one(each) for each in self.two] + self.more(self.three())

        def more(self, values: Any) -> Any:
            return self.four.five(values)

        def __next__(self) -> Any:
            return self.seven(*self.eight)

        @property
        def two(self) -> Any:
            return self.six

    found = uses_of(Uses, ["__getitem__"])
    assert found.loaded >= {"one", "two", "more", "three", "four", "five", "six"}
    assert {"one", "more", "three"} <= found.called
    assert not {"two", "six", "four"} & found.called
    assert "seven" in uses_of(Uses, ["__next__"]).called


def test_places_of_names_in_a_worker() -> None:
    assert _places(["a", "b", "a"], ["b", "a", "c", "a"]) == [1, 0, 3]
    assert _places(["a", "b"], ["a"]) == [0, None]
