"""`reduced_decoding`: JPEG is decoded at a part of its size, as far as what is made of it needs no more. The effect is
checked by the dataset that the window's loader has.

While a sample is fetched, and in that thread alone, what Pillow opens is set to be decoded smaller (`Image.draft`), and
what OpenCV reads gets the flag for it. Samples of both kinds are compared before: all but their pictures must be equal,
and the pictures much alike. Where samples are random, a picture may be another part of the same file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.utils.data import IterableDataset

from ..loop.decoding import OPENCV, PILLOW
from ..loop.own_dataset import own_dataset
from ..loop.pictures import IGNORE_ORIENTATION, JPEG, OPENCV_MODES, PictureCount, Pictures, is_jpeg
from ..loop.steps import Steps
from ..process.originals import get_frame, now, thread_time
from ..process.patches import Patches
from ..process.user_code import is_users_file
from . import Knob
from ._around import Around, stands_around
from ._generators import Generators
from ._samples import alike, parts

NAME = "reduced_decoding"
LOOKS = (2, 8)
"""At least, and at most, this many samples are looked at; between them, as many as fit into `LOOK_SECONDS`."""
LOOK_SECONDS = 0.5
SLOW_SECONDS = 2.0
"""If looking at the first sample takes longer, it is the only one."""
COMPARED = 2
"""So many of them, those of the largest pictures, are decoded in both ways."""
LEAST_SHARE = 0.15
"""Decoding has to be this part of preparing a sample. Ours: with less, making batches would be hardly faster."""
MOST_APART = 0.5
"""Two pictures are alike if their values differ by less than this part of what they differ from their mean. Ours: the
same picture, scaled in two ways, differs by a tenth of that; two parts of it, by all of it and more."""
MOST_LARGER = 1.5
"""What is made of a smaller picture has to be made of a part that is smaller by as much, but for this factor. Ours:
random parts are the same but for rounding; a part in pixels would be larger by two and more."""
LEAST_VALUES = 64
"""A tensor of fewer values is no picture."""
MOST_CALLS = 4
"""Lines that decode pictures; a data set has one or two."""

Call = Tuple[str, str, int]
"""What is called, the file of the caller, and the line."""


class Sizes(NamedTuple):
    """How small pictures may be decoded: with no side of fewer pixels than `side`, or divided by `factor` where a size
    is not known before."""

    side: int
    factor: int


class Looked(NamedTuple):
    """What was found of a loader. `calls`: lines of the user's that decode its pictures."""

    library: str
    sizes: Sizes
    calls: List[Call]


class ReducedDecoding(Knob):
    name = NAME
    layer = "loader"
    takes_samples = True

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        _found.clear()
        return None if loader is None else look(loader)

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        _found[:] = [Sizes(int(told["side"]), int(told["factor"]))]
        return True

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        if value and _found:
            loader.__dict__["dataset"] = Reduced(own_dataset(loader), _found[0])

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else stands_around(own_dataset(loader), Reduced) == bool(value)


_found: List[Sizes] = []
"""How small the pictures of the training loader may be decoded; empty if they may not."""


class Reduced(Around):
    """A dataset whose samples are made of pictures that are decoded smaller."""

    def __init__(self, dataset: Any, sizes: Sizes) -> None:
        super().__init__(dataset, _doctor_sizes=sizes)

    def _fetched(self, fetch: Any, index: Any) -> Any:
        with reduced(self._doctor_sizes):
            return fetch(index)


# -- decoding smaller --------------------------------------------------------------------------------------------------


class _Reducing(threading.local):
    """How small this thread's pictures are decoded now, and which lines have decoded some, if anybody asks."""

    sizes: Optional[Sizes] = None
    calls: Optional[Set[Call]] = None


_reducing = _Reducing()
_patching = threading.RLock()
"""One thread at a time replaces functions."""


@contextlib.contextmanager
def reduced(sizes: Sizes, calls: Optional[Set[Call]] = None) -> Iterator[None]:
    """For this long, this thread decodes JPEG smaller. `calls`: gets the lines of the user's that do so."""
    patches = Patches()
    with _patching:
        try:
            _reducing.sizes, _reducing.calls = sizes, calls
            patches.put(sys.modules.get("PIL.Image"), "open", _opening)
            patches.put(sys.modules.get("cv2"), "imread", _reading("imread"))
            patches.put(sys.modules.get("cv2"), "imdecode", _reading("imdecode"))
            yield
        finally:
            patches.take_off()
            _reducing.sizes = _reducing.calls = None


def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    def open_picture(*args: Any, **kwargs: Any) -> Any:
        image = original(*args, **kwargs)
        sizes = _reducing.sizes
        if sizes is not None and getattr(image, "format", None) in JPEG:
            image.draft(image.mode, (sizes.side, sizes.side))
            _note("open", get_frame(1))
        return image

    return open_picture


def _reading(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def reading(original: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            sizes = _reducing.sizes
            if sizes is not None and args:
                flags = _flags(args, kwargs)
                with contextlib.suppress(Exception):  # What it is given is like nothing that is known.
                    if flags is not None and is_jpeg(args[0]):
                        args, kwargs = args[:1], {**kwargs, "flags": flags | 8 * sizes.factor}
                        _note(name, get_frame(1))
            return original(*args, **kwargs)

        return read

    return reading


def _flags(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[int]:
    """The flags that OpenCV is given to decode a picture whole; None if they say something else, or more is given."""
    flags = kwargs.get("flags", args[1] if len(args) > 1 else 1)
    known = len(args) + len(kwargs) <= 2 and isinstance(flags, int) and flags & ~IGNORE_ORIENTATION in OPENCV_MODES
    return flags if known else None


def _note(name: str, frame: Any) -> None:
    """A picture was decoded smaller in a line, which counts if it is the user's own."""
    calls = _reducing.calls
    if calls is not None and len(calls) < MOST_CALLS and is_users_file(frame.f_code.co_filename):
        calls.add((name, os.path.abspath(frame.f_code.co_filename), frame.f_lineno))


# -- which loaders -----------------------------------------------------------------------------------------------------


class _Taken(NamedTuple):
    """A sample as written: where the generators stood before it, and how many times larger than it was used its picture
    was."""

    before: Generators
    place: int
    sample: Any
    pictures: Pictures
    fits: float


def look(loader: Any) -> Dict[str, Any]:
    """`obstacle`: why pictures can't be decoded smaller, as the end of a sentence; "" if they can. Then `library`:
    which one decodes them; `side` and `factor`: as `Sizes`; `calls`: lines of the user's that decode them; `folder`:
    whether torchvision's `ImageFolder` does."""
    dataset = own_dataset(loader)
    if isinstance(dataset, IterableDataset):
        return {"obstacle": "an iterable dataset has no samples that could be compared"}
    if not loader._auto_collation:
        return {"obstacle": "the loader asks its dataset for whole batches"}
    if "PIL.ImageFile" not in sys.modules and "cv2" not in sys.modules:
        return {"obstacle": _NO_PICTURES}
    try:
        found = _looked_at(dataset)
    except Exception as error:
        return {"obstacle": f"preparing a sample in the main process failed ({type(error).__name__})"}
    if isinstance(found, str):
        return {"obstacle": found}
    _found[:] = [found.sizes]
    calls = list(map(list, found.calls))
    return {
        "obstacle": "",
        "library": found.library,
        **found.sizes._asdict(),
        "calls": calls,
        "folder": not calls and _is_folder(dataset),
    }


def _is_folder(dataset: Any) -> bool:
    """Whether it is torchvision's own `ImageFolder`, which opens its pictures as it always does."""
    kind, opens = type(dataset), getattr(dataset, "loader", None)
    is_torchvisions = kind.__name__ == "ImageFolder" and kind.__module__.startswith("torchvision.")
    return is_torchvisions and getattr(opens, "__name__", "") == "default_loader"


_NO_PICTURES = "its samples are not made of JPEG pictures that Pillow or OpenCV decodes"


def _looked_at(dataset: Any) -> Any:
    """A `Looked`; or why pictures can't be decoded smaller. May raise."""
    before = Generators(dataset)
    try:
        samples = _taken(dataset)
        if isinstance(samples, str):
            return samples
        pictures = [each.pictures for each in samples]
        if min(each.factor for each in pictures) < 2:
            return "its pictures are not decoded at twice the size that is used"
        side = max(min(each.width, each.height) // each.factor for each in pictures)
        sizes = Sizes(max(1, side), min(each.factor for each in pictures))
        calls: Set[Call] = set()
        for each in sorted(samples, key=lambda each: -each.pictures.width * each.pictures.height)[:COMPARED]:
            if not _is_as_good(dataset, each, sizes, calls):
                return "its samples would not be the same but for how pictures are scaled"
    finally:
        before.put_back()
    library = OPENCV if any(each.library == OPENCV for each in pictures) else PILLOW
    return Looked(library, sizes, sorted(calls))


def _taken(dataset: Any) -> Any:
    """Some samples that are made of pictures; or why these can't be decoded smaller."""
    count, begun = len(dataset), now()
    samples: List[_Taken] = []
    spent = decoding = 0.0
    for place in range(LOOKS[1]):
        if place and now() - begun > (LOOK_SECONDS if place >= LOOKS[0] else SLOW_SECONDS):
            break
        index = (place * 7919) % count
        before = Generators(dataset)
        watch, sample, seconds = _watched(dataset, index)
        pictures = watch.told("")
        if pictures is None or not pictures.decoded:
            return _NO_PICTURES
        if watch.reduced:
            return "already on: its pictures are decoded at a part of their size"
        spent += seconds
        decoding += pictures.seconds
        samples.append(_Taken(before, index, sample, pictures, watch.fits))
    if decoding < LEAST_SHARE * spent:
        return "nearly all of the time of a sample goes into something else than decoding"
    return samples


def _watched(dataset: Any, index: int, smaller: Any = None) -> Tuple[PictureCount, Any, float]:
    """A sample, what was seen of its pictures, and the seconds that this thread computed for it. `smaller`: what
    `reduced` returns."""
    watch = PictureCount()
    began = thread_time()
    watch.begin()
    try:
        with smaller or contextlib.nullcontext():
            sample = dataset[index]
    finally:
        watch.end()
    return watch, sample, thread_time() - began


def _is_as_good(dataset: Any, taken: _Taken, sizes: Sizes, calls: Set[Call]) -> bool:
    """Whether a sample is the same with pictures that are decoded smaller."""
    taken.before.put_back()
    try:
        watch, sample, _ = _watched(dataset, taken.place, reduced(sizes, calls))
    except Exception:  # A mask of another size, or a crop that the picture has no room for.
        return False
    drew = taken.before.drew()
    pictures = watch.told("")
    if pictures is None or not watch.reduced:
        return False
    is_scaled = pictures.shrunk == pictures.decoded
    # A part that is cut out at a place in pixels would be as many pixels of a smaller picture.
    if is_scaled and watch.fits * taken.pictures.width / pictures.width > MOST_LARGER * taken.fits:
        return False
    apart = unlike(taken.sample, sample)
    return apart is not None and (all(map(_much_alike, apart)) or (is_scaled and drew and len(apart) == 1))


def unlike(one: Any, other: Any) -> Optional[List[Tuple[torch.Tensor, torch.Tensor]]]:
    """The pictures in two samples that are not equal, as numbers. None if anything else is unlike."""
    found: List[Tuple[torch.Tensor, torch.Tensor]] = []
    for _, part, same in parts(one, other):
        if alike(part, same):
            continue
        first, second = _pixels(part), _pixels(same)
        if type(part) is not type(same) or first is None or second is None or first.shape != second.shape:
            return None
        if first.numel() < LEAST_VALUES:
            return None
        found.append((first, second))
    return found


def _pixels(value: Any) -> Optional[torch.Tensor]:
    """The values of a picture; None for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "fu":
        value = torch.from_numpy(value.astype("float64"))
    elif hasattr(value, "getbands") and numpy is not None:  # A picture of Pillow's.
        value = torch.from_numpy(numpy.asarray(value).astype("float64"))
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return None
    return value.double() if value.is_floating_point() or value.dtype is torch.uint8 else None


def _much_alike(pair: Tuple[torch.Tensor, torch.Tensor]) -> bool:
    one, other = pair
    return bool((one - other).abs().mean() <= MOST_APART * (one - one.mean()).abs().mean())


KNOB = ReducedDecoding
