"""`grouped_lengths`: a batch gets rows of similar length, so that it holds less padding. The effect is checked by the
batch sampler that the window's loader has.

As many rows as make 50 batches are sorted by length, as samplers of that kind do, and cut into batches. These come in
an order in which even a few of them in a row hold short and long ones, so that a window is like the whole. The rows are
some of the dataset, drawn at random, whose lengths were looked at before anything is timed.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import combinations
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from torch.utils.data import BatchSampler, IterableDataset, RandomSampler

from ..loop.own_dataset import own_dataset
from ..loop.padding import Padding, mask_of, padding_of
from ..loop.steps import Steps
from ..process.originals import now
from . import Knob, _seen_batches
from ._generators import Generators
from ._rebatched import Rebatched

NAME = "grouped_lengths"
MOST_SEEN = 32
"""So many batches are looked at, until the loop is found."""
LEAST_EMPTY = 0.1
"""This part of the places of batches has to be padding between their rows. Ours, as for `trimmed-padding`."""
FIXED = 0.1
"""Where this part of the places lies behind the longest row, rows are padded to one length, whatever comes together."""
POOL = 50
"""Batches whose rows are sorted together. transformers' `LengthGroupedSampler` takes as many."""
LEAST_POOLS = 4
"""A dataset has at least this many times the rows that are sorted together, as there."""
COLLATED = 16
"""So many samples show which part of a sample is as long as its row."""
LEAST_IN_ORDER = 0.9
"""Of pairs of rows, this part has to be in the order of what is thought to be their length. Text gives tokens, but not
exactly as many as it has letters."""
LOOK_SECONDS = 1.0
MOST_ROWS = 20000
"""The lengths of so many rows are looked at, or of as many as take `LOOK_SECONDS`."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, lie evenly in [0, 1), however many there are."""


class GroupedLengths(Knob):
    name = NAME
    layer = "loader"
    takes_samples = True

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        seen = _seen_batches.of_loader(steps, NAME, loader)
        if len(seen) < MOST_SEEN:
            padding = padding_of(batch)
            if padding is not None:
                seen.append(padding)

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return None if loader is None else _by_kind(loader) or _by_batches(_seen_batches.so_far(steps, NAME, loader))

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        seen = _seen_batches.taken(steps, NAME, loader)
        if loader is None or _by_kind(loader) or _by_batches(seen):
            return None
        return _look(loader)

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        rows = _looked_at[0] if _looked_at else None
        if value and rows is not None and len(own_dataset(loader)) == rows.size and not _by_kind(loader):
            loader.__dict__["batch_sampler"] = Grouped(loader.batch_sampler, rows.batches)

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else isinstance(loader.batch_sampler, Grouped) == bool(value)


# -- which loaders -----------------------------------------------------------------------------------------------------


def _by_kind(loader: Any) -> str:
    """Why rows of this kind of loader can't be grouped, as the end of a sentence; "" if they can."""
    if isinstance(own_dataset(loader), IterableDataset):
        return "an iterable dataset is not asked for samples by index"
    batches = loader.batch_sampler
    if type(batches) is not BatchSampler or not isinstance(batches.batch_size, int):
        return "the loader does not make its batches by a size"
    if batches.batch_size < 2:
        return "a batch has only one row"
    rows: Any = batches.sampler
    if not isinstance(rows, RandomSampler) or rows.replacement:
        return "the loader does not shuffle its rows, so their order may matter"
    return ""


def _by_batches(seen: Sequence[Padding]) -> str:
    """The same, by the batches that were seen."""
    places = sum(each.places for each in seen)
    if not places:
        return "its batches have no attention mask that says what is padding"
    needed, filled = sum(each.needed for each in seen), sum(each.filled for each in seen)
    if needed < (1 - FIXED) * places:
        return "its batches go on behind their longest row, so that other rows beside it would change nothing"
    if filled > (1 - LEAST_EMPTY) * needed:
        return "the rows of a batch are of nearly the same length"
    return ""


# -- how long rows are -------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """A dataset of so many rows (`size`). `batches` gives some of them without end, grouped by length."""

    size: int
    batches: Iterator[List[int]]


_looked_at: List[Rows] = []
"""What was seen of the loop's dataset."""


def _look(loader: Any) -> Dict[str, Any]:
    """`obstacle`: why the lengths of rows can't be known, as the end of a sentence; "" if they can. Then `part`: what
    of a sample is as long as its row, as code behind it (`["input_ids"]`); and, where transformers is used,
    `by_trainer`: the name of its trainer's argument for it, and the value."""
    before = Generators(own_dataset(loader))
    try:
        return _seen(loader)
    except Exception as error:
        return {"obstacle": f"looking at the lengths of rows failed ({type(error).__name__})"}
    finally:
        before.put_back()


def _seen(loader: Any) -> Dict[str, Any]:
    dataset, size = own_dataset(loader), loader.batch_sampler.batch_size
    count = len(dataset)
    drawn = random.Random().sample(range(count), min(count, MOST_ROWS))
    part = _part([dataset[index] for index in drawn[:COLLATED]], loader.collate_fn)
    if part is None:
        return {"obstacle": "no part of a sample tells how long its row is"}
    begun = now()
    lengths: Dict[int, int] = {}
    for index in drawn:
        lengths[index] = len(_of_sample(dataset[index], part))
        if now() - begun > LOOK_SECONDS:
            break
    pool = pool_of(count, size)
    if len(lengths) < min(count, pool * size):
        return {"obstacle": f"only {len(lengths)} rows could be looked at in {LOOK_SECONDS:g} s"}
    _looked_at[:] = [Rows(count, endless(lengths, size, pool))]
    return {"obstacle": "", "part": "".join(f"[{json.dumps(key)}]" for key in part), **_by_trainer()}


def _part(samples: Sequence[Any], collate: Any) -> Optional[Tuple[Any, ...]]:
    """How one gets from a sample to what is as long as its row in the batch; None where nothing is."""
    mask = mask_of(collate(samples))
    if mask is None or mask.shape[0] != len(samples):
        return None
    filled = (mask != 0).sum(1).tolist()
    ways = [(), *((key,) for key in _keys(samples[0]))]
    best, way = max(((_in_order(samples, way, filled), way) for way in ways), key=lambda each: each[0])
    return way if best >= LEAST_IN_ORDER else None


def _keys(sample: Any) -> List[Any]:
    if isinstance(sample, (list, tuple)):
        return list(range(min(len(sample), 8)))
    return list(sample.keys()) if callable(getattr(sample, "keys", None)) else []


def _in_order(samples: Sequence[Any], way: Tuple[Any, ...], filled: Sequence[int]) -> float:
    """Of the pairs of rows of unlike length, the part that this part of samples has in the same order."""
    try:
        lengths = [len(_of_sample(sample, way)) for sample in samples]
    except (TypeError, KeyError, IndexError):
        return 0.0
    pairs = [(a, b) for a, b in combinations(range(len(samples)), 2) if filled[a] != filled[b]]
    same = sum((lengths[a] - lengths[b]) * (filled[a] - filled[b]) > 0 for a, b in pairs)
    return same / len(pairs) if pairs else 0.0


def _of_sample(sample: Any, way: Tuple[Any, ...]) -> Any:
    for key in way:
        sample = sample[key]
    return sample


def _by_trainer() -> Dict[str, Any]:
    """What the arguments of transformers' trainer call it: version 5 has another name for it."""
    module = sys.modules.get("transformers.training_args")
    names = getattr(getattr(module, "TrainingArguments", None), "__dataclass_fields__", {})
    for name, value in (("train_sampling_strategy", "group_by_length"), ("group_by_length", True)):
        if name in names:
            return {"by_trainer": [name, value]}
    return {}


# -- batches -----------------------------------------------------------------------------------------------------------


class Grouped(Rebatched):
    """Batches as large as those of another sampler, of other rows."""

    def __init__(self, batches: Any, instead: Iterator[List[int]]) -> None:
        self._batches = batches
        self._instead = instead

    def of(self, batches: Any) -> Grouped:
        return Grouped(batches, self._instead)

    def __iter__(self) -> Iterator[List[Any]]:
        for batch in self._batches:
            yield next(self._instead)[: len(batch)]

    def __len__(self) -> int:
        return len(self._batches)


def pool_of(count: int, size: int) -> int:
    """How many batches of `size` rows are made of rows that are sorted together."""
    return max(1, min(POOL, count // (LEAST_POOLS * size)))


def endless(lengths: Dict[int, int], size: int, pool: int) -> Iterator[List[int]]:
    """Batches of rows, by their index, again and again in another order. `lengths`: of rows, by their index."""
    drawn = random.Random()
    while True:
        order = drawn.sample(list(lengths), len(lengths))
        whole = max(1, len(order) // (pool * size)) * pool * size
        for first in range(0, whole, pool * size):
            rows = sorted(order[first : first + pool * size], key=lengths.__getitem__)
            batches = [rows[place : place + size] for place in range(0, len(rows), size)]
            yield from (batches[rank] for rank in evenly(len(batches), drawn.random()))


def evenly(count: int, start: float) -> List[int]:
    """The numbers below `count` in an order in which each few in a row are spread over all of them."""
    places = [(start + number * _GOLDEN) % 1.0 for number in range(count)]
    rank = {number: place for place, number in enumerate(sorted(range(count), key=places.__getitem__))}
    return [rank[number] for number in range(count)]


KNOB = GroupedLengths
