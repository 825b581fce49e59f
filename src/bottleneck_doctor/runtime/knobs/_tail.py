"""The last transforms of a dataset's samples, as far as they do to a whole batch what they do to each picture: those of
torchvision that make numbers of pixels, and what follows them.

`Tail` is what was found. `WithoutTail` is the dataset whose pictures stay bytes; `Tail.finished` does the rest to a
batch of them. The transforms stay as they are for everybody else: while a sample is fetched, and in that thread alone,
they are passed over. So an evaluation may use the same chain of transforms meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any, Deque, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils.data import Dataset

from ._around import Around

_LIBRARY = "torchvision.transforms"
_MAKES_NUMBERS = ("ToTensor", "ConvertImageDtype", "ToDtype")
_ON_BATCHES = (*_MAKES_NUMBERS, "Normalize", "ToPureTensor")
_MOST_OBJECTS = 500
_LONGEST = 64
"""A longer list, or a larger dictionary, holds data and is not looked into."""
_DEEPEST = 6
_BYTES_A_PIXEL = ("L", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV", "LA")
"""Modes of PIL's pictures whose channels are bytes."""


class Place(NamedTuple):
    """Where transforms are held: in attribute `name` of `owner`. `first`: the place in a chain's list of the first that
    is passed over; None where the attribute is the transform itself. `instead`: what stands there meanwhile."""

    owner: Any
    name: str
    first: Optional[int]
    instead: List[Any]


class Tail(NamedTuple):
    """The last transforms of the samples, in their order, and all places that hold them."""

    elements: List[Any]
    places: List[Place]

    def took_arrays(self) -> bool:
        """Whether pictures reached the first of them as arrays."""
        return any(each.took_arrays for place in self.places for each in place.instead)

    def finished(self, pictures: torch.Tensor) -> torch.Tensor:
        """What the transforms make of a batch of pictures that are bytes still."""
        if pictures.dtype is not torch.uint8:
            raise TypeError(f"pictures were {pictures.dtype} before their last transforms, and not bytes")
        pictures = pictures.contiguous()
        for each in self.elements:
            # ToTensor itself takes no batch.
            is_first = name_of(each) == "ToTensor"
            pictures = pictures.to(torch.get_default_dtype()).div(255) if is_first else each(pictures)
        return pictures


def tail_of(dataset: Any) -> Optional[Tail]:
    """The last transforms of a dataset's samples that a batch can get instead; None where there are none."""
    elements: List[Any] = []
    places: List[Place] = []
    for owner, name, chain in _held(dataset):
        first = _first(chain)
        if first is None:
            continue
        here = chain[first:]
        if elements and _described(here) != _described(elements):
            continue  # Another one, of masks or the like. The batches that are compared show which it was.
        elements = elements or here
        lone = owner.__dict__[name] is chain[0]
        places.append(Place(owner, name, None if lone else first, [Deferred(each) for each in here]))
    return Tail(elements, places) if places else None


def chains_of(dataset: Any) -> List[Any]:
    """The chains of transforms within a dataset, without those that are a part of another one."""
    found = [(owner, chain) for owner, name, chain in _held(dataset) if owner.__dict__[name] is not chain[0]]
    inner = {id(each) for _, chain in found for each in chain}
    return [owner for owner, _ in found if id(owner) not in inner]


def name_of(element: Any) -> str:
    """The class of a transform of torchvision's; "" for any other object."""
    kind = type(element)
    return kind.__name__ if kind.__module__.startswith(_LIBRARY) else ""


def written(element: Any) -> str:
    """A transform as a user writes it."""
    name = name_of(element)
    if name == "ToDtype":
        return f"ToDtype({element.dtype}, scale={element.scale})"
    if name == "ConvertImageDtype":
        return f"ConvertImageDtype({element.dtype})"
    if name == "Normalize":
        mean, std = _numbers(element.mean), _numbers(element.std)
        return f"Normalize({mean}, {std})" if mean and std else "Normalize(...)"
    return f"{name}()"


def _numbers(values: Any) -> str:
    """A mean or a deviation for each channel, as code; "" where that would be long."""
    try:
        listed = [round(float(each), 6) for each in values]
    except (TypeError, ValueError):
        return ""
    text = ", ".join(f"{each:g}" for each in listed)
    return f"({text},)" if len(listed) == 1 else f"({text})" if len(listed) <= 4 else ""


# -- which transforms --------------------------------------------------------------------------------------------------


def _first(chain: List[Any]) -> Optional[int]:
    """Where the last transforms of a chain begin: with the first that makes numbers, if all behind it suit a batch."""
    start = len(chain)
    while start and name_of(chain[start - 1]) in _ON_BATCHES:
        start -= 1
    return next((place for place in range(start, len(chain)) if _makes_numbers(chain[place])), None)


def _makes_numbers(element: Any) -> bool:
    name = name_of(element)
    dtype = getattr(element, "dtype", None)
    floating = isinstance(dtype, torch.dtype) and dtype.is_floating_point
    return name == "ToTensor" or (name in _MAKES_NUMBERS and floating)


def _described(elements: List[Any]) -> List[str]:
    return [written(each) for each in elements]


def _held(dataset: Any) -> Iterator[Tuple[Any, str, List[Any]]]:
    """Objects within a dataset, by breadth, that hold a chain of transforms or a lone one: the object, the attribute,
    and the transforms. Of a chain, only the last transform is looked into: what others hold is at work before the end.
    """
    waiting: Deque[Tuple[Any, int]] = deque([(dataset, 0)])
    seen = {id(dataset)}
    while waiting and len(seen) < _MOST_OBJECTS:
        each, depth = waiting.popleft()
        chain = _chain_in(each)
        if chain:
            yield each, "transforms", chain
        elif name_of(each) == "" and type(getattr(each, "__dict__", None)) is dict:
            for name, value in each.__dict__.items():
                if name_of(value) in _MAKES_NUMBERS:
                    yield each, name, [value]
        if depth < _DEEPEST:
            for value in chain[-1:] or _inside(each):
                if id(value) not in seen:
                    seen.add(id(value))
                    waiting.append((value, depth + 1))


def _chain_in(each: Any) -> List[Any]:
    """The transforms of a chain; empty for anything else. torchvision's own containers are none but for `Compose`: they
    apply theirs at random."""
    attributes = getattr(each, "__dict__", None)
    held: Any = attributes.get("transforms") if type(attributes) is dict else None
    # Older releases of albumentations have a kind of list of their own.
    is_chain = callable(each) and isinstance(held, (list, tuple)) and name_of(each) in ("", "Compose")
    return list(held) if is_chain else []


def _inside(each: Any) -> Iterator[Any]:
    """What may hold transforms within an object that is no chain."""
    attributes = getattr(each, "__dict__", None)
    if type(each) is dict:
        values = list(each.values()) if len(each) <= _LONGEST else []
    elif type(each) in (list, tuple):
        values = list(each) if len(each) <= _LONGEST else []
    else:
        values = list(attributes.values()) if type(attributes) is dict and name_of(each) == "" else []
    for value in values:
        holds = type(value) in (dict, list, tuple) or isinstance(value, Dataset) or callable(value)
        if (holds or hasattr(value, "__getitem__")) and not isinstance(value, (type, str, bytes, torch.Tensor)):
            yield value


# -- passing over them -------------------------------------------------------------------------------------------------


class _Fetching(threading.local):
    """Whether this thread fetches a sample without its last transforms."""

    on = False


fetching = _Fetching()


class Deferred:
    """Stands for a transform, and passes over it where `fetching` says so."""

    def __init__(self, element: Any) -> None:
        self._element = element
        self.took_arrays = False

    def __call__(self, *inputs: Any) -> Any:
        if not fetching.on:
            return self._element(*inputs)
        if name_of(self._element) == "ToTensor" and len(inputs) == 1:
            return self._as_bytes(inputs[0])
        return inputs if len(inputs) > 1 else inputs[0]

    def _as_bytes(self, picture: Any) -> Any:
        """What `ToTensor` makes of a picture before it makes numbers of its bytes."""
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(picture, numpy.ndarray) and picture.dtype == numpy.uint8:
            self.took_arrays = True
            return torch.from_numpy((picture if picture.ndim == 3 else picture[:, :, None]).transpose((2, 0, 1)))
        if getattr(picture, "mode", "") in _BYTES_A_PIXEL:
            return sys.modules[f"{_LIBRARY}.functional"].pil_to_tensor(picture)
        return self._element(picture)


class WithoutTail(Around):
    """A dataset whose samples lack the transforms at the places of `tail`."""

    def __init__(self, dataset: Any, tail: Tail) -> None:
        super().__init__(dataset, _doctor_tail=tail)

    def _fetched(self, fetch: Any, index: Any) -> Any:
        before = []
        fetching.on = True
        try:
            for owner, name, first, instead in self._doctor_tail.places:
                attributes = owner.__dict__
                held = attributes[name]
                before.append((attributes, name, held))
                attributes[name] = instead[0] if first is None else [*held[:first], *instead]
            return fetch(index)
        finally:
            fetching.on = False
            for attributes, name, held in before:
                attributes[name] = held
