"""Rows grouped by length: which loaders, what is seen of their rows, and the batches that come of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import make_dataclass
from itertools import islice
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, RandomSampler

from bottleneck_doctor.runtime.knobs import grouped_lengths
from bottleneck_doctor.runtime.knobs.grouped_lengths import (
    KNOB,
    POOL,
    Grouped,
    endless,
    evenly,
    pool_of,
)
from bottleneck_doctor.runtime.loop.steps import Steps

COUNT, SIZE = 4000, 4
LENGTHS = [5 + (index * 7919) % 83 for index in range(COUNT)]


class Texts:
    """Samples are dicts, whose text is as long as its row, beside other things with a length."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> dict[str, Any]:
        random.random()
        return {"name": f"text {index}", "ids": [1] * LENGTHS[index], "label": index}


def padded(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    ids = pad_sequence([torch.tensor(each["ids"]) for each in samples], batch_first=True)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def to_fixed(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    return {name: torch.nn.functional.pad(rows, (0, 128 - rows.shape[1])) for name, rows in padded(samples).items()}


def loader(**changed: Any) -> Any:
    given: dict[str, Any] = {"batch_size": SIZE, "shuffle": True, "collate_fn": padded, **changed}
    return DataLoader(given.pop("dataset", Texts()), **given)


@pytest.fixture(autouse=True)
def nothing_looked_at() -> Iterator[None]:
    grouped_lengths._looked_at.clear()
    yield
    grouped_lengths._looked_at.clear()


def seen(steps: Steps, of: Any, count: int = 8) -> None:
    for batch in islice(of, count):
        KNOB.batch_seen(steps, of, batch)


def told(of: Any) -> tuple[str | None, Any]:
    steps = Steps()
    seen(steps, of)
    return KNOB.obstacle(steps, of), KNOB.facts(steps, "cpu", of)


def test_what_is_as_long_as_its_row_is_found_by_the_mask_and_nothing_is_drawn() -> None:
    of = loader()
    steps = Steps()
    seen(steps, of)
    before = random.getstate(), torch.get_rng_state()
    assert KNOB.obstacle(steps, of) == ""
    assert KNOB.facts(steps, "cpu", of) == {"obstacle": "", "part": '["ids"]'}
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


class Tokens(Texts):
    def __getitem__(self, index: int) -> Any:
        return torch.ones(LENGTHS[index], dtype=torch.long)


class Pairs(Texts):
    def __getitem__(self, index: int) -> Any:
        return index % 2, "x" * LENGTHS[index]


def of_tokens(samples: Any) -> Any:
    rows = pad_sequence(samples, batch_first=True)
    return {"input_ids": rows, "attention_mask": (rows != 0).long()}


def of_pairs(samples: Any) -> Any:
    return of_tokens([torch.ones(1 + len(text) // 3, dtype=torch.long) for _, text in samples])


@pytest.mark.parametrize(
    ("dataset", "collate", "part"), [(Tokens(), of_tokens, ""), (Pairs(), of_pairs, "[1]")], ids=["tensors", "pairs"]
)
def test_samples_of_other_kinds(dataset: Any, collate: Any, part: str) -> None:
    assert told(loader(dataset=dataset, collate_fn=collate)) == ("", {"obstacle": "", "part": part})


class Counted(Texts):
    """A sample does not show how long its row becomes."""

    def __getitem__(self, index: int) -> Any:
        return index


def of_indices(samples: Any) -> Any:
    return padded([{"ids": [1] * LENGTHS[index]} for index in samples])


class Alike(Texts):
    def __getitem__(self, index: int) -> Any:
        return {"ids": [1] * (50 + index % 3)}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"collate_fn": list}, "no attention mask"),
        ({"collate_fn": to_fixed}, "go on behind their longest row"),
        ({"dataset": Alike()}, "nearly the same length"),
        ({"shuffle": False}, "does not shuffle"),
        ({"batch_size": 1}, "only one row"),
        ({"shuffle": False, "sampler": RandomSampler(Texts(), replacement=True)}, "does not shuffle"),
        ({"batch_size": 1, "shuffle": False, "batch_sampler": [[1, 2], [3, 4]]}, "by a size"),
    ],
)
def test_loaders_of_which_rows_are_not_grouped(changed: dict[str, Any], why: str) -> None:
    obstacle, facts = told(loader(**changed))
    assert obstacle is not None
    assert why in obstacle
    assert facts is None


def test_samples_that_do_not_tell_how_long_their_row_is() -> None:
    obstacle, facts = told(loader(dataset=Counted(), collate_fn=of_indices))
    assert obstacle == ""
    assert "no part of a sample" in facts["obstacle"]


def test_rows_that_take_too_long_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_lengths, "LOOK_SECONDS", 0.0)
    _, facts = told(loader())
    assert "only 1 rows could be looked at" in facts["obstacle"]


def places(batches: list[list[int]]) -> int:
    return sum(len(batch) * max(LENGTHS[index] for index in batch) for batch in batches)


class Seeded(random.Random):
    """Begins alike where nobody says how to begin."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)


def test_a_window_has_batches_of_similar_rows_and_even_a_few_are_like_all(monkeypatch: pytest.MonkeyPatch) -> None:
    # Which rows come together is chance, and so is how much a few batches differ from all.
    torch.manual_seed(0)
    monkeypatch.setattr(random, "Random", Seeded)
    of = loader()
    assert told(of)[0] == ""
    KNOB.shape(True, of)
    assert isinstance(of.batch_sampler, Grouped)
    assert len(of.batch_sampler) == COUNT // SIZE
    batches: Any = list(of.batch_sampler)
    assert {len(batch) for batch in batches} == {SIZE}
    filled = sum(LENGTHS[index] for batch in batches for index in batch)
    assert places(batches) < 1.1 * filled
    shares = [places(batches[first : first + 8]) / (8 * SIZE) for first in range(0, len(batches), 8)]
    mean = sum(shares) / len(shares)
    assert max(abs(share / mean - 1) for share in shares) < 0.3
    random_batches = [list(range(first, first + SIZE)) for first in range(0, COUNT, SIZE)]
    others = [places(random.Random(first).sample(random_batches, 8)) / (8 * SIZE) for first in range(len(shares))]
    assert sum(others) / len(others) > 1.3 * mean


def test_nothing_is_changed_that_was_not_looked_at() -> None:
    of = loader()
    before = of.batch_sampler
    KNOB.shape(True, of)
    assert of.batch_sampler is before
    assert told(of)[0] == ""
    KNOB.shape(False, of)
    assert of.batch_sampler is before
    other = loader(dataset=list(range(10)))
    KNOB.shape(True, other)
    assert not isinstance(other.batch_sampler, Grouped)


def test_batches_are_as_large_as_the_others_and_go_on_from_window_to_window() -> None:
    made = Grouped([[0] * SIZE, [0] * SIZE, [0]], endless(dict(enumerate(LENGTHS)), SIZE, 10))
    assert [len(batch) for batch in made] == [SIZE, SIZE, 1]
    more = made.of([[0] * SIZE])
    assert isinstance(more, Grouped)
    assert len(next(iter(more))) == SIZE


def test_the_pool_is_that_of_transformers() -> None:
    assert pool_of(10**6, 8) == POOL
    assert pool_of(640, 8) == 20
    assert pool_of(5, 8) == 1


@pytest.mark.parametrize("count", [1, 2, 7, POOL])
def test_an_even_order_holds_all_of_them(count: int) -> None:
    assert sorted(evenly(count, 0.3)) == list(range(count))


def test_the_trainers_argument_is_told_by_what_its_version_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("training_args")
    monkeypatch.setitem(sys.modules, "transformers.training_args", module)
    module.TrainingArguments = make_dataclass("Old", ["group_by_length"])
    assert told(loader())[1]["by_trainer"] == ["group_by_length", True]
    module.TrainingArguments = make_dataclass("New", ["train_sampling_strategy"])
    assert told(loader())[1]["by_trainer"] == ["train_sampling_strategy", "group_by_length"]
