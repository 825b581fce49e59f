"""What takes a loader's arguments if a library makes it: the function that the user's line calls, as `fit` of a
library's trainer, or the class of an object, as that trainer. The loader is told apart by what it was given: a
parameter counts if it is called alike and has the same value."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Dict, List, Mapping, Optional

import torch.utils.data.dataloader as dataloader
from torch.utils.data import Subset

from ..loop.known_values import own_attributes
from ..loop.own_dataset import own_dataset
from ..loop.signatures import (
    PLAIN,
    Places,
    all_given,
    by_library,
    given_to,
    library_frames,
    looked_up,
    named_rest,
    owner_of,
    parameters,
    taken_by,
    takes_any,
)
from ..process.user_code import is_users_file
from ..wire.messages import Taker

NAMES = tuple(inspect.signature(dataloader.DataLoader.__init__).parameters)[2:]
"""What a loader is given beside its dataset."""
DATASET = "dataset"
"""What takers call that."""
_PREFIXES = {"skorch": "iterator_train__"}
"""Libraries whose classes take all arguments of their training loader behind a prefix."""
_HOLDS_THEM = re.compile(r"(data_?)?loader_?(kwargs|args|params|options)|dl_kwargs")
"""What a dict of them is called as an argument, as `dataloader_kwargs` of darts."""

_names_by_class: Dict[type, Places] = {}


def takers_of(frame: Optional[FrameType], loader: Any, given: Mapping[str, Any]) -> Optional[List[Taker]]:
    """What takes arguments of a loader that is made in this frame, the function first; None where the user's own line
    makes it. `given`: what it was given by name."""
    within = library_frames(frame)
    if not within:
        return None
    try:
        values = {name: given[name] if name in given else getattr(loader, name, None) for name in NAMES}
        plain = {name: value for name, value in values.items() if isinstance(value, PLAIN)}
        return [*_by_call(within, plain, given), *_by_objects(within, plain, given, loader)]
    except Exception:  # Whatever attributes and sources of a library make of the question.
        return []


def dataset_takers_of(frame: Optional[FrameType], loader: Any) -> List[Taker]:
    """The same for the dataset of such a loader, which is told apart as an object. A library that has a class of
    datasets may ask them for more than samples, so nothing is told of these."""
    within = library_frames(frame)
    try:
        datasets = [own_dataset(loader)]
        while type(datasets[-1]) is Subset:
            datasets.append(datasets[-1].dataset)
        if not within or not _is_plain(type(datasets[-1])):
            return []
        return [*_given_to_call(within, datasets), *_given_to_objects(within, datasets, loader)]
    except Exception:  # As above.
        return []


def _is_plain(kind: type) -> bool:
    """Whether a class of datasets is torch's or the user's own."""
    if kind.__module__.partition(".")[0] in ("torch", "torchvision"):
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (isinstance(file, str) and is_users_file(file))


def _given_to_call(within: List[FrameType], datasets: List[Any]) -> List[Taker]:
    for frame in within:
        held = given_to(frame)
        for name, at in parameters(frame.f_code).items():
            if any(held.get(name) is each for each in datasets):
                return [_of_dataset("", name, at, _name_of(frame))]
        if not takes_any(frame.f_code):
            break
    return []


def _given_to_objects(within: List[FrameType], datasets: List[Any], loader: Any) -> List[Taker]:
    made: Dict[str, Taker] = {}
    for frame in within:
        owner = owner_of(frame)
        if owner is None or owner is loader:
            continue
        held = own_attributes(owner) or {}
        for name, at in taken_by(type(owner)).places.items():
            if any(held.get(name) is each for each in datasets):
                made.setdefault(type(owner).__name__, _of_dataset(type(owner).__name__, name, at))
    return list(made.values())


def _name_of(frame: FrameType) -> str:
    """What a line that calls this function names."""
    name = frame.f_code.co_name
    return type(owner_of(frame)).__name__ if name == "__init__" else name


def _of_dataset(made: str, name: str, at: Optional[int], called: str = "") -> Taker:
    return Taker(made, {DATASET: name}, {} if at is None else {DATASET: at}, called=called)


def _by_call(within: List[FrameType], values: Mapping[str, Any], given: Mapping[str, Any]) -> List[Taker]:
    """The function that the user's line calls. It takes no names if it is known to refuse them; nothing is said where
    that is not known."""
    for number, frame in enumerate(within):
        code, held, called = frame.f_code, given_to(frame), _name_of(frame)
        if not held and code.co_argcount:
            return []
        places = {name: at for name, at in parameters(code).items() if name in values}
        taken = {name: at for name, at in places.items() if _same(held[name], values[name])}
        holding = [name for name in parameters(code) if _holds_them(name, held[name], given)]
        if holding and "num_workers" not in taken:
            return [replace(_within("", holding[0], held[holding[0]], values), called=called)]
        if taken:
            return [replace(_taker("", taken), called=called)]
        if "num_workers" in places:
            return []  # What it makes of its value is not known.
        rest = named_rest(code)
        if places or not rest:
            return [Taker()]
        if all(_hands_on(each, given) for each in within[number:]):
            return [Taker(names={name: name for name in values}, called=called)]
        if not takes_any(code):
            return []
    return []


def _hands_on(frame: FrameType, given: Mapping[str, Any]) -> bool:
    """Whether all that a function has no names for went to the loader."""
    more = given_to(frame).get(named_rest(frame.f_code))
    return isinstance(more, dict) and bool(more) and all(name in given and given[name] is more[name] for name in more)


def _by_objects(
    within: List[FrameType], values: Mapping[str, Any], given: Mapping[str, Any], loader: Any
) -> List[Taker]:
    """Objects whose methods lead to the loader, by their classes."""
    made: List[Taker] = []
    seen = {id(loader)}
    for frame in within:
        owner = owner_of(frame)
        if owner is None or id(owner) in seen:
            continue
        seen.add(id(owner))
        kind, held = type(owner), own_attributes(owner) or {}
        prefix = by_library(kind, _PREFIXES)
        if prefix is not None:
            made.append(Taker(kind.__name__, {name: f"{prefix}{name}" for name in values}))
            continue
        known = {name: at for name, at in _names_of(kind).items() if name in held}
        taken = {name: at for name, at in known.items() if name in values and _same(held[name], values[name])}
        holding = [name for name in known if _holds_them(name, held[name], given)]
        if holding and "num_workers" not in taken:
            made.append(_within(kind.__name__, holding[0], held[holding[0]], values))
        elif taken:
            made.append(_taker(kind.__name__, taken))
    return made


def _taker(made: str, taken: Places) -> Taker:
    places = {name: at for name, at in taken.items() if at is not None}
    return Taker(made, {name: name for name in taken}, places)


def _within(made: str, holding: str, held: Optional[Dict[str, Any]], values: Mapping[str, Any]) -> Taker:
    return Taker(made, {name: name for name in values}, within=holding, holds=dict(held or {}))


def _holds_them(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether an argument of this name and value is a dict of what the loader was given, or stands for none."""
    if _HOLDS_THEM.fullmatch(name) is None:
        return False
    return value is None or (isinstance(value, dict) and all_given(value, given))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _names_of(kind: type) -> Places:
    """What a class takes, also what it only looks up."""
    known = _names_by_class.get(kind)
    if known is None:
        known = _names_by_class[kind] = {**dict.fromkeys(looked_up(kind)), **taken_by(kind).places}
    return known
