"""`cached_samples`: the loader's dataset is a list of samples that were prepared before, in place of one that prepares
each sample whenever it is asked. The effect is checked by the dataset that the window's loader has.

A list is the same data only if a sample is the same each time it is prepared. Some samples are prepared twice to see
that, and nothing may be drawn from a random generator meanwhile.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections import Counter
from typing import AbstractSet, Any, Callable, Dict, List, Optional, Set, Tuple

import torch
from torch.utils.data import IterableDataset, TensorDataset

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from ..process.originals import now
from ._generators import Generators
from ._in_memory import InMemory, made_once, too_large
from ._memory import MemoryLimit
from ._samples import alike
from .batched_fetch import inside_subsets, reads_rows

NAME = "cached_samples"
LOOK_SECONDS = 0.3
LOOKS = (2, 8)
"""At least, and at most, this many samples are prepared twice; between them, as many as fit into `LOOK_SECONDS`."""
FILL_SECONDS = 1.5
FILLED = (4, 2048)
"""At least, and at most, this many samples are prepared for a window; between them, as many as fit into
`FILL_SECONDS`."""
SPREAD_BYTES = 64 << 20
"""The samples of a window take this much memory, which is more than the cache of a core."""
MOST_COPIES = 16384
_WRITTEN = "ListedSamples"
"""The class that the edit of this knob may write (`edits/listed_samples.py`)."""
_IN_MEMORY = "already on: the samples are in memory"
_DRAWN = "its samples are drawn at random, so each epoch has others"
_UNLIKE = "a sample is not the same each time it is prepared"
_OBJECT_BYTES = 100
"""About what an object of Python's takes besides its data."""


class CachedSamples(InMemory):
    name = NAME
    takes_samples = True

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return None if loader is None else look(loader)

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        _source[:] = [weakref.ref(own_dataset(loader))]
        return True

    @classmethod
    def stand_in(cls) -> Any:
        return _stand_in()

    @classmethod
    def stands_in(cls, dataset: Any) -> bool:
        return isinstance(dataset, Prepared)


# -- which loaders -----------------------------------------------------------------------------------------------------


def look(loader: Any) -> Dict[str, Any]:
    """`obstacle`: why the samples of this loader can't be prepared once, as the end of a sentence; "" if they can.
    Then `samples`, their number, and about what preparing takes: `bytes` in all, and `seconds` in all. `repeats`:
    whether a sample is the same in each epoch; not there if nobody knows."""
    dataset = own_dataset(loader)
    obstacle = _by_kind(loader)
    if obstacle:
        return {"obstacle": obstacle, "repeats": True} if obstacle is _IN_MEMORY else {"obstacle": obstacle}
    try:
        _source[:] = [weakref.ref(dataset)]
        count = len(dataset)
        found = _looked_at(dataset, count, loader.collate_fn)
    except Exception as error:
        return {"obstacle": f"preparing a sample in the main process failed ({type(error).__name__})"}
    if isinstance(found, str):
        return {"obstacle": found, "repeats": False} if found in (_DRAWN, _UNLIKE) else {"obstacle": found}
    size, seconds = found
    large = too_large(count * size, "samples")
    if large:
        return {"obstacle": large, "repeats": True}
    return {"obstacle": "", "repeats": True, "samples": count, "bytes": int(count * size), "seconds": count * seconds}


def _by_kind(loader: Any) -> str:
    """What already the kinds of loader and dataset rule out, without a sample."""
    dataset = own_dataset(loader)
    if isinstance(dataset, IterableDataset):
        return "an iterable dataset has no samples that could be taken by index"
    if not loader._auto_collation:
        return "the loader asks its dataset for whole batches"
    inner = inside_subsets(dataset)
    if isinstance(inner, (list, tuple, TensorDataset)) or reads_rows(inner) or type(inner).__name__ == _WRITTEN:
        return _IN_MEMORY
    if not callable(getattr(dataset, "__len__", None)):
        return f"`{type(dataset).__name__}` does not say how many samples it has"
    return ""


def _looked_at(dataset: Any, count: int, collate: Callable[[Any], Any]) -> Any:
    """Bytes and seconds of one sample; or why samples can't be kept. May raise."""
    if count < 2:
        return "there are hardly any samples"
    begun, before = now(), Generators(dataset)
    size = 0.0
    shared: Set[int] = set()
    lasted: List[float] = []
    seen: List[Tuple[Any, Any]] = []
    try:
        for place in range(LOOKS[1]):
            if place >= LOOKS[0] and now() - begun > LOOK_SECONDS:
                break
            index = (place * 7919) % count
            first = dataset[index]
            again = now()
            second = dataset[index]
            lasted.append(now() - again)
            if before.drew():
                return _DRAWN
            same = alike(first, second)
            if same is None:
                return f"samples of this kind can't be compared (`{type(first).__name__}`)"
            if not same:
                return _UNLIKE
            if _elsewhere(first):
                return "its samples are on a device"
            # What is there both times lies in the dataset, however often a sample is kept.
            shared |= blocks(first).keys() & blocks(second).keys()
            size += bytes_of(first, shared)
            seen.append((first, second))
        # What a batch is made of must stay as it is, for it comes again. One by one: not all samples go together.
        for first, _ in seen[: LOOKS[0]]:
            collate([first])
        if not all(alike(first, second) for first, second in seen):
            return "the loader's `collate_fn` changes the samples that it is given"
    finally:
        before.put_back()
    return size / len(lasted), sorted(lasted)[len(lasted) // 2]


# -- samples -----------------------------------------------------------------------------------------------------------


def bytes_of(sample: Any, shared: AbstractSet[int] = frozenset()) -> int:
    """About how much memory it takes to keep a sample.

    A part of a larger tensor or array keeps all of that in memory. `shared`: the addresses of those that are in memory
    anyway, of which only the part counts.
    """
    kept = blocks(sample)
    return _bytes_beside(sample, shared) + sum(size for address, size in kept.items() if address not in shared)


def blocks(sample: Any) -> Dict[int, int]:
    """The blocks of memory that the tensors and arrays of a sample lie in: bytes by address."""
    if isinstance(sample, dict):
        sample = list(sample.values())
    if isinstance(sample, (list, tuple)):
        return {address: size for each in sample for address, size in blocks(each).items()}
    found = _block(sample)
    return {} if found is None else {found[0]: found[1]}


def _block(value: Any) -> Optional[Tuple[int, int]]:
    """Address and bytes of the block that a tensor or an array lies in; None for anything else."""
    try:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            return storage.data_ptr(), storage.nbytes()
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            while isinstance(value.base, numpy.ndarray):
                value = value.base
            return value.__array_interface__["data"][0], value.nbytes
    except (RuntimeError, NotImplementedError):  # A tensor without such a block, like a sparse one.
        pass
    return None


def _bytes_beside(sample: Any, shared: AbstractSet[int]) -> int:
    """Bytes of a sample beside the blocks that it keeps in memory."""
    if isinstance(sample, dict):
        return _OBJECT_BYTES + sum(_bytes_beside(each, shared) for each in sample.values())
    if isinstance(sample, (list, tuple)):
        return _OBJECT_BYTES + sum(_bytes_beside(each, shared) for each in sample)
    block = _block(sample)
    if block is not None and block[0] not in shared:
        return _OBJECT_BYTES
    if isinstance(sample, torch.Tensor):
        return _OBJECT_BYTES + sample.numel() * sample.element_size()
    size = getattr(sample, "nbytes", None)
    if isinstance(size, int):
        return _OBJECT_BYTES + size
    if callable(getattr(sample, "tobytes", None)):
        return _OBJECT_BYTES + len(sample.tobytes())
    return sys.getsizeof(sample)


def _elsewhere(sample: Any) -> bool:
    """Whether a part of it is not in the host's memory."""
    if isinstance(sample, torch.Tensor):
        return sample.device.type != "cpu"
    if isinstance(sample, dict):
        return any(map(_elsewhere, sample.values()))
    return isinstance(sample, (list, tuple)) and any(map(_elsewhere, sample))


class Prepared:
    """Stands for the list of all samples of a dataset that has `count`; it holds some of them."""

    def __init__(self, samples: List[Any], count: int) -> None:
        self._samples = samples
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._samples[index % len(self._samples)]


_source: List[Any] = []
"""The dataset that was looked at last, held weakly: the one that this process may take samples of."""
_prepared: List[Tuple[Any, Prepared]] = []
"""The dataset whose samples were prepared last, held weakly, and what stands for the list of all of them."""


def _stand_in() -> Optional[Prepared]:
    """What stands for a list of all samples; None if preparing them fails."""
    dataset = _source[0]() if _source else None
    if dataset is None:
        return None
    made: Optional[Prepared] = made_once(_prepared, dataset, lambda: _prepared_of(dataset))
    return made


def _prepared_of(dataset: Any) -> Prepared:
    count = len(dataset)
    return Prepared(filled(dataset, count), count)


def filled(dataset: Any, count: int) -> List[Any]:
    """Some of the `count` samples, and copies of them. May raise, also where they take too much memory."""
    begun, limit = now(), MemoryLimit("cpu")
    samples: List[Any] = []
    for place in range(min(count, FILLED[1])):
        if place >= FILLED[0] and now() - begun > FILL_SECONDS:
            break
        samples.append(dataset[(place * 7919) % count])
        short = limit.short()
        if short:
            raise MemoryError(short)
    times = Counter(address for sample in samples for address in blocks(sample))
    shared = {address for address, often in times.items() if often > 1}
    size = sum(bytes_of(sample, shared) for sample in samples)
    whole = len(samples)
    while size < SPREAD_BYTES and len(samples) < min(count, MOST_COPIES):
        one = copy.deepcopy(samples[len(samples) % whole])
        samples.append(one)
        size += bytes_of(one, shared)
    return samples


KNOB = CachedSamples
