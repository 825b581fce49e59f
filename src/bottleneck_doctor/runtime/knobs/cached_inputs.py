"""`cached_inputs`: what a dataset gives to its transforms, such as a decoded picture, is kept in memory, and only the
transforms are done again for each sample. The effect is checked by the dataset that the window's loader has.

This is for transforms that are random, so that prepared samples can't be kept (`cached_samples`).
"""

from __future__ import annotations

import contextlib
import types
import weakref
from typing import Any, Dict, List, Optional, Tuple

from torch.utils.data import IterableDataset

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from ..process.originals import now
from ..process.uses import own_attributes
from ._formatted import KeptRows, Rows, Transform, transform_of
from ._generators import Generators
from ._in_memory import InMemory, made_once, too_large
from ._inputs import Input, Inputs, Kept, finished, has_input, taken
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
_WRITTEN = "KeptInputs"
"""The class that the edit of this knob writes (`edits/kept_inputs.py`)."""
_MOST_AROUND = 4
"""A dataset may be a part of a part of another one; so many are looked into."""


class CachedInputs(InMemory):
    name = NAME
    takes_samples = True

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return None if loader is None else look(loader)

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        dataset = own_dataset(loader)
        chains = _chains(dataset)
        _source[:] = [(weakref.ref(dataset), chains)] if chains else []
        return bool(chains)

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
    dataset = own_dataset(loader)
    _source.clear()
    if isinstance(dataset, IterableDataset):
        return {"obstacle": "an iterable dataset has no samples that could be taken by index"}
    if not loader._auto_collation:
        return {"obstacle": "the loader asks its dataset for whole batches"}
    if type(dataset).__name__ == _WRITTEN:
        return {"obstacle": f"already on: `{_WRITTEN}` keeps what the transforms get in memory"}
    try:
        chains = _chains(dataset)
        if not chains:
            return {"obstacle": "its samples go through no chain of transforms that was found"}
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


def _chains(dataset: Any) -> List[Any]:
    """The chains of transforms that a dataset holds, or the function that does them to rows. May raise."""
    function = transform_of(dataset)
    return chains_of(dataset) if function is None else [Transform(function)]


def _looked_at(dataset: Any, chains: List[Any], count: int) -> Any:
    """Bytes and seconds of one input; or why inputs can't be kept. May raise."""
    if count < 2:
        return "there are hardly any samples"
    begun, before = now(), Generators(dataset)
    inputs = inputs_of(dataset, chains)
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
            second = inputs[index]
            read = now()
            prepared = dataset[index]
            whole.append(now() - read)
            taking.append(read - again)
            if not has_input(first):
                return "its samples go through no chain of transforms that was found"
            if not alike(first, second):
                return "what its transforms get is not the same each time, or can't be compared"
            started.put_back()
            if not alike(finished(first, chains), prepared):
                return "something else is done to its samples after their transforms"
            if not alike(first, second):
                return "its transforms change what they are given"
            sizes.append(bytes_of(first, blocks(first).keys() & blocks(second).keys()))
    finally:
        before.put_back()
    if sum(taking) < LEAST_SHARE * sum(whole):
        return "nearly all of the time of a sample goes into its transforms"
    return sum(sizes) / len(sizes), sorted(taking)[len(taking) // 2]


def inputs_of(dataset: Any, chains: List[Any]) -> Any:
    """The samples of a dataset, by index, without what its transforms do."""
    return Rows(dataset) if isinstance(chains[0], Transform) else Inputs(dataset, chains)


def _held_by(dataset: Any, chains: List[Any]) -> Optional[Dict[str, Any]]:
    """How a user would write it, where an attribute of the dataset, or of such an attribute, is its only chain.
    `owner`: what stands between the dataset and it (`.dataset` for a subset); `name`: the attribute's; `kind`: the type
    of a sample, "" if it is nothing but what the transforms make; `places`: as `_places_of`. A dataset of the library
    `datasets` is of the kind `rows`, and needs no more. None for any other dataset. May raise."""
    if len(chains) != 1:
        return None
    if isinstance(chains[0], Transform):
        return {"owner": "", "name": "", "kind": "rows", "places": []}
    before = Generators(dataset)
    owner, path = dataset, ""
    try:
        expected = Inputs(dataset, chains)[0]
        for _ in range(_MOST_AROUND):
            for holder, before_name, name in _holding(owner, chains[0]):
                # That it holds the chain does not mean that samples go through it there.
                if alike(_taken_at(dataset, holder, name, chains[0]), expected):
                    places = _places_of(expected)
                    kind = "" if isinstance(expected, Input) else type(expected).__name__
                    told = {"owner": path, "name": f"{before_name}{name}", "kind": kind, "places": places}
                    return None if places is None else told
            owner, path = getattr(owner, "dataset", None), f"{path}.dataset"
            if owner is None:
                break
    finally:
        before.put_back()
    return None


def _holding(owner: Any, chain: Any) -> List[Tuple[Any, str, str]]:
    """Where an object holds a chain: what has it as an attribute, the code before that attribute's name, and the name.
    That is the object itself or, as with a class of the user's around a chain, one of its attributes."""
    own = list(vars(owner).items())
    found = [(owner, "", name) for name, value in own if value is chain]
    for outer, value in own:
        if outer != "dataset" and value is not chain and not isinstance(value, types.ModuleType):
            inside = list((own_attributes(value) or {}).items())
            found += [(value, f"{outer}.", name) for name, each in inside if each is chain]
    return found


def _taken_at(dataset: Any, owner: Any, name: str, chain: Any) -> Any:
    """The first sample with `Input` in place of what the chain makes that `owner` holds as `name`."""
    attributes = vars(owner)
    attributes[name] = lambda *given, **named: taken(0, given, named) if fetching.on else chain(*given, **named)
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
        if any(has_input(part) for key, part in parts if key not in inputs):
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
    kind = KeptRows if isinstance(chains[0], Transform) else Kept
    return kind(filled(inputs_of(dataset, chains), count), count, chains)


KNOB = CachedInputs
