"""The dataset that a loader's batches come from, where the loader answers with another one."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from bottleneck_doctor.runtime.loader.feed import Feed, IndexStream
from bottleneck_doctor.runtime.loader.shadow import shadow_of
from bottleneck_doctor.runtime.loop.own_dataset import own_dataset

NUMBERS: Any = list(range(12))


class Numbered(DataLoader):  # type: ignore[type-arg]
    """Asked for its dataset, it answers with the rows that its batches are made of."""

    def __init__(self) -> None:
        self.rows: Any = {number: number * 10 for number in NUMBERS}
        super().__init__(NUMBERS, batch_size=4, collate_fn=self.taken)

    def taken(self, numbers: list[int]) -> list[int]:
        return [self.rows[number] for number in numbers]

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__("rows" if name == "dataset" else name)


class ByProperty(DataLoader):  # type: ignore[type-arg]
    """It has no dataset among its attributes."""

    @property
    def dataset(self) -> Any:
        return NUMBERS

    @dataset.setter
    def dataset(self, given: Any) -> None:
        pass


def test_loader_that_answers_with_another_dataset_is_known_by_its_own() -> None:
    loader = Numbered()
    assert loader.dataset is loader.rows
    assert own_dataset(loader) is NUMBERS


def test_dataset_that_is_no_attribute_is_asked_for() -> None:
    loader = ByProperty(NUMBERS)
    assert own_dataset(loader) is NUMBERS
    assert shadow_of(loader, {}).dataset is NUMBERS


def test_window_has_the_batches_of_the_loaders_own_dataset() -> None:
    loader = Numbered()
    feed = Feed(loader, {}, IndexStream(iter([[0, 1], [5, 7]])))
    feed.open()
    assert [feed.next(), feed.next()] == [[0, 10], [50, 70]]
    assert loader.dataset is loader.rows


def test_copy_of_a_plain_loader_is_of_its_class() -> None:
    loader = DataLoader(NUMBERS)
    assert type(shadow_of(loader, {})) is DataLoader


def test_copies_of_loaders_that_answer_otherwise_are_of_one_class() -> None:
    first, second = shadow_of(Numbered(), {}), shadow_of(Numbered(), {})
    assert type(first) is type(second)
    assert isinstance(first, Numbered)
    assert first.dataset is NUMBERS
