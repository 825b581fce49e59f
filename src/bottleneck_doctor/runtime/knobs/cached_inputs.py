"""`cached_inputs`: what a dataset gives to its transforms, such as a decoded picture, is kept in memory, and only the
transforms are done again for each sample. The effect is checked by the dataset that the window's loader has.

This is for transforms that are random, so that prepared samples can't be kept (`cached_samples`).

The transforms stay what they are for everybody else. While inputs are taken, and in the thread that takes them alone,
calls of a chain return what it was given. Chains of torchvision's take one value, those of albumentations named ones.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils.data import IterableDataset

from ..loop.steps import Steps
from ..process.originals import now
from ._generators import Generators
from ._in_memory import InMemory, made_once, too_large
from ._samples import alike
from ._tail import chains_of, fetching
from .cached_samples import blocks, bytes_of, filled

NAME = "cached_inputs"
LOOK_SECONDS = 0.3
LOOKS = (2, 8)
"""At least, and at most, this many samples are looked at; between them, as many as fit into `LOOK_SECONDS`."""
SLOW_SECONDS = 2.0
"""If looking at the first sample takes longer, it is the only one."""
LEAST_SHARE = 0.15
"""Taking an input has to be this part of preparing a sample. Ours: with less, making batches would be hardly faster."""


ABSENT: Any = object()
_passing = threading.RLock()
"""One thread at a time takes inputs."""
_MOST_AROUND = 4
"""A dataset may be a part of a part of another one; so many are looked into."""


class Input(NamedTuple):
    """Stands in a sample for what a chain of transforms makes of `value`. `chain`: which chain it is. `name`: None, or
    the chain is given all of `value` by name, and this is what it makes of the one with this name. `after`: methods
    that are called afterwards, such as `float()`, each with its arguments."""

    value: Any
    chain: int
    name: Optional[str] = None
    after: Tuple[Tuple[str, Tuple[Any, ...]], ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._then, name)

    def __truediv__(self, divisor: Any) -> Any:
        return self._then("__truediv__", divisor)

    def _then(self, method: str, *given: Any) -> Any:
        if not all(isinstance(each, (int, float, str, torch.dtype, type(None))) for each in given):
            raise TypeError(f"`{method}` is given more than numbers")
        return self._replace(after=(*self.after, (method, given)))

    def made(self, value: Any) -> Any:
        """What becomes of `value`, which the chain has made."""
        for method, given in self.after:
            value = getattr(value, method)(*given)
        return value

    def code(self) -> Optional[str]:
        """The same as code, in which `{}` stands for the value; None where that can't be written everywhere."""
        text = "{}"
        for method, given in self.after:
            if any(isinstance(each, torch.dtype) for each in given):
                return None
            told = ", ".join(map(repr, given))
            text = f"({text} / {told})" if method == "__truediv__" else f"{text}.{method}({told})"
        return text


class CachedInputs(InMemory):
    name = NAME

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return None if loader is None else look(loader)

    @classmethod
    def stand_in(cls) -> Any:
        return _stand_in()

    @classmethod
    def stands_in(cls, dataset: Any) -> bool:
        return isinstance(dataset, Kept)


# -- which loaders -----------------------------------------------------------------------------------------------------


def look(loader: Any) -> Dict[str, Any]:
    """`obstacle`: why the inputs of the transforms can't be kept, as the end of a sentence; "" if they can. Then
    `samples`, their number, and about what taking all inputs takes: `bytes`, and `seconds`. `held`: as `_held_by`."""
    dataset = loader.dataset
    _source.clear()
    if isinstance(dataset, IterableDataset):
        return {"obstacle": "an iterable dataset has no samples that could be taken by index"}
    if not loader._auto_collation:
        return {"obstacle": "the loader asks its dataset for whole batches"}
    chains = chains_of(dataset)
    if not chains:
        return {"obstacle": "its samples go through no chain of transforms that was found"}
    try:
        count = len(dataset)
        found = _looked_at(dataset, chains, count)
    except Exception as error:
        return {"obstacle": f"its samples could not be taken without their transforms ({type(error).__name__})"}
    if isinstance(found, str):
        return {"obstacle": found}
    size, seconds = found
    large = too_large(count * size, "inputs")
    if large:
        return {"obstacle": large}
    _source[:] = [(weakref.ref(dataset), chains)]
    told = {"obstacle": "", "samples": count, "bytes": int(count * size), "seconds": count * seconds}
    with contextlib.suppress(Exception):  # Then nobody knows how a user would write it.
        told["held"] = _held_by(dataset, chains)
    return told


def _looked_at(dataset: Any, chains: List[Any], count: int) -> Any:
    """Bytes and seconds of one input; or why inputs can't be kept. May raise."""
    if count < 2:
        return "there are hardly any samples"
    begun, before = now(), Generators(dataset)
    inputs = Inputs(dataset, chains)
    sizes: List[float] = []
    taking: List[float] = []
    whole: List[float] = []
    try:
        for place in range(LOOKS[1]):
            if place and now() - begun > (LOOK_SECONDS if place >= LOOKS[0] else SLOW_SECONDS):
                break
            index = (place * 7919) % count
            started = Generators(dataset)
            first = inputs[index]
            if started.drew():
                return "its samples are drawn at random before their transforms"
            again = now()
            taken = inputs[index]
            read = now()
            prepared = dataset[index]
            whole.append(now() - read)
            taking.append(read - again)
            if not _has_input(first):
                return "its samples go through no chain of transforms that was found"
            if not alike(first, taken):
                return "what its transforms get is not the same each time, or can't be compared"
            started.put_back()
            if not alike(finished(first, chains), prepared):
                return "something else is done to its samples after their transforms"
            if not alike(first, taken):
                return "its transforms change what they are given"
            sizes.append(bytes_of(first, blocks(first).keys() & blocks(taken).keys()))
    finally:
        before.put_back()
    if sum(taking) < LEAST_SHARE * sum(whole):
        return "nearly all of the time of a sample goes into its transforms"
    return sum(sizes) / len(sizes), sorted(taking)[len(taking) // 2]


def _held_by(dataset: Any, chains: List[Any]) -> Optional[Dict[str, Any]]:
    """How a user would write it, where an attribute of the dataset is its only chain. `owner`: what stands between the
    dataset and that attribute (`.dataset` for a subset); `name`: the attribute's; `kind`: the type of a sample, "" if
    it is nothing but what the transforms make; `places`: as `_places_of`. None for any other dataset. May raise."""
    if len(chains) != 1:
        return None
    before = Generators(dataset)
    owner, path = dataset, ""
    try:
        expected = Inputs(dataset, chains)[0]
        for _ in range(_MOST_AROUND):
            for name, value in list(vars(owner).items()):
                # That it holds the chain does not mean that samples go through it there.
                if value is chains[0] and alike(_taken_at(dataset, owner, name, chains[0]), expected):
                    places = _places_of(expected)
                    kind = "" if isinstance(expected, Input) else type(expected).__name__
                    told = {"owner": path, "name": name, "kind": kind, "places": places}
                    return None if places is None else told
            owner, path = getattr(owner, "dataset", None), f"{path}.dataset"
            if owner is None:
                break
    finally:
        before.put_back()
    return None


def _taken_at(dataset: Any, owner: Any, name: str, chain: Any) -> Any:
    """The first sample with `Input` in place of what the chain makes that `owner` holds as `name`."""
    attributes = vars(owner)
    attributes[name] = lambda *given, **named: _taken(0, given, named) if fetching.on else chain(*given, **named)
    fetching.on = True
    try:
        return dataset[0]
    finally:
        fetching.on = False
        attributes[name] = chain


def _places_of(sample: Any) -> Optional[List[Dict[str, str]]]:
    """What a sample has of one call of a chain, each as code: `name`, by which the chain is given it ("": not by name),
    its `place` (`[0]`), and what is `made` of it afterwards. None if the sample has more than that, if something is
    held deeper, or if the chain is given more than what the sample has."""
    if isinstance(sample, Input):
        inputs: Dict[Any, Input] = {None: sample}
    elif type(sample) in (tuple, list, dict):
        parts = list(sample.items()) if isinstance(sample, dict) else list(enumerate(sample))
        inputs = {key: part for key, part in parts if isinstance(part, Input)}
        if any(_has_input(part) for key, part in parts if key not in inputs):
            return None
    else:
        return None
    codes = [each.code() for each in inputs.values()]
    if not inputs or not all(isinstance(key, (int, str, type(None))) for key in inputs) or None in codes:
        return None
    first = next(iter(inputs.values()))
    names = [each.name for each in inputs.values()]
    asked = [None] if first.name is None else sorted(first.value)
    if any(each.value is not first.value for each in inputs.values()) or sorted(names, key=str) != asked:
        return None
    return [
        {"name": each.name or "", "place": "" if key is None else f"[{key!r}]", "made": str(code)}
        for (key, each), code in zip(inputs.items(), codes)
    ]


class Inputs:
    """The samples of a dataset with `Input` in place of what its chains of transforms make."""

    def __init__(self, dataset: Any, chains: List[Any]) -> None:
        self._dataset = dataset
        self._chains = chains

    def __getitem__(self, index: Any) -> Any:
        with _passed_over(self._chains):
            return self._dataset[index]


@contextlib.contextmanager
def _passed_over(chains: List[Any]) -> Iterator[None]:
    """Calls of these chains in this thread return what they are given. For this long, their classes have a `__call__`
    that asks whose call it is: Python looks for it in the class alone, and a chain may be held in many places."""
    numbers = {id(chain): number for number, chain in enumerate(chains)}
    before: List[Tuple[type, Any]] = []
    with _passing:
        try:
            for kind in {type(chain) for chain in chains}:
                own = vars(kind).get("__call__", ABSENT)
                kind.__call__ = _asking(kind.__call__, numbers)
                before.append((kind, own))
            fetching.on = True
            yield
        finally:
            fetching.on = False
            for kind, own in before:
                if own is ABSENT:
                    del kind.__call__
                else:
                    kind.__call__ = own


def _asking(call: Any, numbers: Dict[int, int]) -> Any:
    def asked(self: Any, *given: Any, **named: Any) -> Any:
        if fetching.on and id(self) in numbers:
            return _taken(numbers[id(self)], given, named)
        return call(self, *given, **named)

    return asked


def _taken(chain: int, given: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What stands for the result of a chain: it is given one value, or some by name. Anything else raises."""
    if named and not given:
        return {name: Input(named, chain, name) for name in named}
    (value,) = given
    if named:
        raise TypeError("a chain of transforms is given values in both ways")
    return Input(value, chain)


def _has_input(sample: Any) -> bool:
    if isinstance(sample, Input):
        return True
    if isinstance(sample, dict):
        return any(map(_has_input, sample.values()))
    return isinstance(sample, (list, tuple)) and any(map(_has_input, sample))


def finished(sample: Any, chains: List[Any]) -> Any:
    """A sample with its transforms done, in the order in which the dataset does them."""
    return _finished(sample, chains, {})


def _finished(sample: Any, chains: List[Any], made: Dict[int, Any]) -> Any:
    """`made`: what was made by name so far, by what the chain was given. One call makes all of it."""
    if isinstance(sample, Input):
        if sample.name is None:
            return sample.made(chains[sample.chain](sample.value))
        if id(sample.value) not in made:
            made[id(sample.value)] = chains[sample.chain](**sample.value)
        return sample.made(made[id(sample.value)][sample.name])
    if isinstance(sample, dict):
        return {key: _finished(value, chains, made) for key, value in sample.items()}
    if isinstance(sample, (list, tuple)):
        parts = [_finished(value, chains, made) for value in sample]
        return type(sample)(*parts) if hasattr(sample, "_fields") else type(sample)(parts)
    return sample


class Kept:
    """Stands for a dataset that has `count` samples, and keeps the inputs of its transforms; it holds some of them."""

    def __init__(self, samples: List[Any], count: int, chains: List[Any]) -> None:
        self._samples = tuple(samples)
        self._count = count
        self.chains = chains

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return finished(self._samples[index % len(self._samples)], self.chains)


_source: List[Tuple[Any, List[Any]]] = []
"""The dataset that was looked at last, held weakly, and its chains."""
_kept: List[Tuple[Any, Kept]] = []
"""The dataset whose inputs were kept last, held weakly, and what stands for it."""


def _stand_in() -> Optional[Kept]:
    """What stands for the dataset with all inputs kept; None if taking them fails."""
    dataset, chains = (_source[0][0](), _source[0][1]) if _source else (None, [])
    if dataset is None:
        return None
    made: Optional[Kept] = made_once(_kept, dataset, lambda: _kept_of(dataset, chains))
    return made


def _kept_of(dataset: Any, chains: List[Any]) -> Kept:
    count = len(dataset)
    return Kept(filled(Inputs(dataset, chains), count), count, chains)


KNOB = CachedInputs
