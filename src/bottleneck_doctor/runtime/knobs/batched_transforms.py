"""`batched_transforms`: the last transforms of the samples, such as `ToTensor` and `Normalize`, are done once to each
batch, in place of once to each sample. The effect is checked by the dataset that the window's loader has.

The loader's dataset hands out pictures as bytes, and its collate function stacks these. Then the transforms are done to
the stack, in the same process; or, with the value `device`, in the training process, on the device to which the bytes
are copied first. A batch of both kinds is compared before: they must be equal in every byte.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.utils.data import IterableDataset

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from ..process.originals import now
from . import GuestContext, Knob
from ._generators import Generators
from ._samples import alike, parts
from ._tail import Tail, WithoutTail, name_of, tail_of, written
from .batched_fetch import same_batch

NAME = "batched_transforms"
_WRITTEN = "transformed"
"""The collate function that the edit of this knob writes (`edits/transformed_batches.py`)."""
ON_DEVICE = "device"
SAMPLES = 4
"""So many samples are compared."""
SLOW_SECONDS = 0.1
"""A sample that takes longer is not looked at again. Ours: what is saved are calls of some microseconds each."""
FIRST_SECONDS = 2.0
"""If the first sample takes longer, it is not tried a second time. Ours."""

Where = Tuple[Any, ...]
"""Indices and keys that lead to a tensor of a batch."""


class Looked(NamedTuple):
    """What was found of a loader: its last transforms, and where in its batches the pictures are. `assignable`: whether
    something else can be put there, as in a list."""

    tail: Tail
    places: List[Where]
    assignable: bool


class BatchedTransforms(Knob):
    name = NAME
    layer = "loader"
    shapes_last = True
    takes_samples = True

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        _places.clear()
        return None if loader is None else look(loader)

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        _places[:] = [tuple(place) for place in told["where"]] if tail_of(own_dataset(loader)) is not None else []
        return bool(_places)

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        tail = tail_of(own_dataset(loader)) if value and _places else None
        if tail is not None:
            values = loader.__dict__
            values["dataset"] = WithoutTail(own_dataset(loader), tail)
            if value != ON_DEVICE:
                values["collate_fn"] = OnBatch(loader.collate_fn, tail, list(_places))

    def delivered(self, value: Any, batch: Any, context: GuestContext) -> Any:
        bare = getattr(getattr(context.feed, "loader", None), "dataset", None)
        if value == ON_DEVICE and isinstance(bare, WithoutTail):
            for place in _places:
                batch = _changed(batch, place, bare._doctor_tail, context.device)
        return batch

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else isinstance(own_dataset(loader), WithoutTail) == bool(value)


_places: List[Where] = []
"""Where in the training loader's batches the pictures are; empty if the transforms can't be done to its batches."""


class OnBatch:
    """A loader's collate function, and the last transforms of its samples done to what it makes."""

    def __init__(self, collate: Any, tail: Tail, places: List[Where]) -> None:
        self._collate = collate
        self._tail = Tail(tail.elements, [])  # Workers that are spawned get no dataset with it.
        self._places = places

    def __call__(self, samples: Any) -> Any:
        batch = self._collate(samples)
        for place in self._places:
            batch = _changed(batch, place, self._tail)
        return batch


def _changed(batch: Any, place: Where, tail: Tail, device: str = "") -> Any:
    """The batch with the pictures at this place finished, on a device if one is named."""
    if not place:
        return tail.finished(batch.to(device, non_blocking=True) if device else batch)
    inner = _changed(batch[place[0]], place[1:], tail, device)
    if isinstance(batch, tuple):
        values = [inner if each == place[0] else value for each, value in enumerate(batch)]
        return type(batch)(*values) if hasattr(batch, "_fields") else tuple(values)
    batch[place[0]] = inner
    return batch


# -- which loaders -----------------------------------------------------------------------------------------------------


def look(loader: Any) -> Dict[str, Any]:
    """`obstacle`: why the last transforms can't be done to the batches of this loader, as the end of a sentence; "" if
    they can. Then `transforms`: as they are written; `instead`: what stands there afterwards; `on_batch`: what is done
    to the batch; `where` in it the pictures are, and `places`: the same as code, if they can be replaced there."""
    dataset = own_dataset(loader)
    if isinstance(dataset, IterableDataset):
        return {"obstacle": "an iterable dataset has no samples that could be compared"}
    if not loader._auto_collation:
        return {"obstacle": "the loader asks its dataset for whole batches"}
    try:
        found = _looked_at(loader)
    except Exception as error:
        return {"obstacle": f"preparing a sample in the main process failed ({type(error).__name__})"}
    if isinstance(found, str):
        return {"obstacle": found}
    _places[:] = found.places
    return {
        "obstacle": "",
        "transforms": [written(each) for each in found.tail.elements],
        "instead": _instead(found.tail),
        "on_batch": [_for_batch(each) for each in found.tail.elements if name_of(each) != "ToPureTensor"],
        "where": [list(place) for place in found.places],
        "places": ["".join(f"[{step!r}]" for step in place) for place in found.places] if found.assignable else [],
    }


def _instead(tail: Tail) -> str:
    """What a user writes in place of the last transforms, so that pictures are tensors of bytes; "" for nothing."""
    if name_of(tail.elements[0]) != "ToTensor":
        return ""
    return "v2.ToImage()" if tail.took_arrays() else "PILToTensor()"


def _for_batch(element: Any) -> str:
    if name_of(element) != "ToTensor":
        return written(element)
    dtype = torch.get_default_dtype()
    return f"v2.ToDtype({dtype}, scale=True)" if ".v2." in type(element).__module__ else f"ConvertImageDtype({dtype})"


def _looked_at(loader: Any) -> Any:
    """A `Looked`; or why batches can't get the transforms. May raise."""
    dataset = own_dataset(loader)
    tail = tail_of(dataset)
    if tail is None and getattr(loader.collate_fn, "__name__", "") == _WRITTEN:
        return f"already on: the loader's `{_WRITTEN}` does the last transforms to whole batches"
    if tail is None:
        return "its samples do not end with transforms of torchvision's that could be done to a whole batch"
    count = len(dataset)
    bare = WithoutTail(dataset, tail)
    before = Generators(dataset)
    try:
        begun = now()
        samples = [dataset[0]]
        seconds = now() - begun
        if SLOW_SECONDS < seconds < FIRST_SECONDS:
            # The first one may have to import what it uses, and may meet a collection of garbage.
            before.put_back()
            begun = now()
            samples = [dataset[0]]
            seconds = now() - begun
        if seconds > SLOW_SECONDS:
            return "preparing a sample takes so long that calls of transforms cost next to nothing beside it"
        indices = [(place * 7919) % count for place in range(SAMPLES)]
        samples += [dataset[index] for index in indices[1:]]
        batch = loader.collate_fn(samples)
        before.put_back()
        bytes_of_pictures = loader.collate_fn([bare[index] for index in indices])
    finally:
        before.put_back()
    places: List[Where] = []
    for place, one, other in parts(batch, bytes_of_pictures):
        if alike(one, other):
            continue
        if not isinstance(other, torch.Tensor) or other.dtype is not torch.uint8:
            return "its samples are not the same each time they are prepared, or of a kind that can't be compared"
        if not isinstance(one, torch.Tensor) or not same_batch(one, tail.finished(other)):
            return "something else is done to its pictures after these transforms"
        places.append(place)
    if not places:
        return "the transforms of torchvision's that were found change no batch"
    return Looked(tail, places, all(_is_assignable(batch, place) for place in places))


def _is_assignable(batch: Any, place: Where) -> bool:
    for step in place:
        if not isinstance(batch, (list, dict)):
            return False
        batch = batch[step]
    return True


KNOB = BatchedTransforms
