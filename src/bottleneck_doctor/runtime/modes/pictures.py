"""How long Pillow decodes pictures, and JPEG that is decoded whole and made much smaller at once.

JPEG can be decoded at a half, a quarter or an eighth of its size for a part of the time (`Image.draft` of Pillow). What
Pillow decodes, and what makes it smaller, is watched only while a batch is being made. How long both ways of decoding
take is tried afterwards, on a few of the same files.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from statistics import median
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..process.originals import now, open_file, thread_time
from ..process.patches import Patches

Size = Tuple[int, int]
"""Width and height."""
JPEG = ("JPEG", "MPO")
"""What Pillow calls it. Some cameras write several pictures into a file."""
FACTORS = (8, 4, 2)
"""What JPEG's decoder can divide a size by."""
MOST_TRIED = 3
"""Files that are decoded in both ways."""
MOST_SECONDS = 0.5
"""No further file is tried after this long."""
_SHRINKERS = (
    ("PIL.Image", "Image", "resize"),
    ("cv2", "", "resize"),
    ("torchvision.transforms._functional_tensor", "", "resize"),
)


class Pictures(NamedTuple):
    """The pictures of a batch. `seconds` of processor time: for decoding pictures of any kind, and for the copies that
    `convert` makes. Waiting for a file is no part of it.

    `decoded`: how many were JPEG, of which `shrunk` were made smaller. `factor`: what the size of each could have been
    divided by when it was decoded, and still have been large enough. `mode`: what they were converted to; "" if they
    were not.
    """

    seconds: float
    decoded: int
    shrunk: int
    factor: int
    width: int
    height: int
    used_width: int
    used_height: int
    mode: str
    file: str
    """One of them, which was `width` x `height` and became `used_width` x `used_height`."""


class PictureCount:
    """Watches between `begin` and `end`. There is one in each process; it is not for several threads."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._forget()

    def _forget(self) -> None:
        self._decoded = self._shrunk = 0
        self._seconds = 0.0
        self._factor = FACTORS[0]
        self._mode = ""
        self._loaded: Optional[Tuple[Size, str]] = None
        """The picture that was decoded last and not made smaller yet."""
        self._example: Optional[Tuple[Size, Size, str]] = None

    def begin(self) -> None:
        self._forget()
        files = getattr(sys.modules.get("PIL.ImageFile"), "ImageFile", None)
        if files is None:
            return
        self._patches.put(files, "load", self._loading)
        self._patches.put(files, "convert", self._converting)
        for module, kind, name in _SHRINKERS:
            owner = sys.modules.get(module)
            self._patches.put(getattr(owner, kind, None) if kind else owner, name, self._shrinking)

    def end(self) -> None:
        self._patches.take_off()

    def told(self) -> Optional[Pictures]:
        """None if no picture was decoded."""
        if not self._seconds:
            return None
        size, used, file = self._example or ((0, 0), (0, 0), "")
        factor = self._factor if self._shrunk == self._decoded > 0 else 1
        return Pictures(self._seconds, self._decoded, self._shrunk, factor, *size, *used, self._mode, file)

    def _loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load(image: Any, *args: Any, **kwargs: Any) -> Any:
            if not getattr(image, "tile", None):  # It was decoded before.
                return original(image, *args, **kwargs)
            file = getattr(image, "filename", "") or getattr(getattr(image, "fp", None), "name", "")
            began = thread_time()
            result = original(image, *args, **kwargs)
            self._seconds += thread_time() - began
            if getattr(image, "format", None) in JPEG:
                self._decoded += 1
                self._loaded = (image.size, os.fsdecode(file) if isinstance(file, (str, bytes)) else "")
            return result

        return load

    def _converting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(image: Any, mode: Any = None, *args: Any, **kwargs: Any) -> Any:
            before, began = self._seconds, thread_time()
            result = original(image, mode, *args, **kwargs)
            self._seconds = before + thread_time() - began  # It was decoded meanwhile, or before.
            self._mode = mode if isinstance(mode, str) else ""
            return result

        return convert

    def _shrinking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def resize(image: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(image, *args, **kwargs)
            loaded, self._loaded = self._loaded, None
            if loaded is not None:
                with contextlib.suppress(Exception):  # A picture unlike any: then it was not made smaller.
                    box = kwargs.get("box", args[2] if len(args) > 2 else None)
                    self._resized(loaded, size_of(image), size_of(made), box)
            return made

        return resize

    def _resized(self, loaded: Tuple[Size, str], before: Optional[Size], after: Optional[Size], box: Any) -> None:
        size, file = loaded
        if before is None or after is None or before[0] * before[1] > size[0] * size[1] or not all(after):
            return
        if isinstance(box, tuple) and len(box) == 4:
            before = int(box[2] - box[0]), int(box[3] - box[1])
        self._shrunk += 1
        self._factor = min(self._factor, divisor(before, after))
        if self._example is None and file:
            self._example = (size, after, os.path.abspath(file))


def size_of(picture: Any) -> Optional[Size]:
    """The size of a picture of Pillow's, an array (height first) or a tensor (height and width last)."""
    shape = getattr(picture, "shape", None)
    if shape is None:
        size = getattr(picture, "size", None)
        return size if isinstance(size, tuple) and len(size) == 2 else None
    if len(shape) < 2:
        return None
    height, width = shape[-2:] if hasattr(picture, "numel") else shape[:2]
    return int(width), int(height)


def divisor(before: Size, after: Size) -> int:
    """By what JPEG's decoder can divide a size, so that it is still not smaller than what is made of it; 1: by
    nothing."""
    fits = min(before[0] / after[0], before[1] / after[1])
    return next((factor for factor in FACTORS if factor <= fits), 1)


def summary(batches: Sequence[Pictures]) -> Dict[str, Any]:
    """What a window showed, as JSON values: `decoded_seconds`, and `pictures`, None if those that are JPEG are not
    decoded larger than they are used, or that could not be tried."""
    return {"decoded_seconds": sum(each.seconds for each in batches), "pictures": _larger_than_used(batches)}


def _larger_than_used(batches: Sequence[Pictures]) -> Optional[Dict[str, Any]]:
    known = [each for each in batches if each.decoded]
    factor = min((each.factor for each in known), default=1)
    examples = list({each.file: each for each in known if each.file}.values())
    if factor < 2 or not examples:
        return None
    tried = _tried([each.file for each in examples], factor, examples[0].mode)
    if not tried:
        return None
    first = examples[0]
    return {
        "factor": factor,
        "width": first.width,
        "height": first.height,
        "used_width": first.used_width,
        "used_height": first.used_height,
        "whole_seconds": median(whole for whole, _ in tried),
        "reduced_seconds": median(reduced for _, reduced in tried),
        "tried": len(tried),
    }


def _tried(files: Sequence[str], factor: int, mode: str) -> List[Tuple[float, float]]:
    """Seconds that each of some files takes whole, and at a part of its size, with its conversion to `mode`."""
    module = sys.modules.get("PIL.Image")
    tried: List[Tuple[float, float]] = []
    until = now() + MOST_SECONDS
    try:
        for file in files:
            if module is None or len(tried) >= MOST_TRIED or now() > until:
                break
            with open_file(file, "rb") as handle:
                decoded = functools.partial(_decoded, module, handle.read(), mode)
            decoded(1)  # Whoever comes first finds cold caches.
            tried.append((decoded(1), decoded(factor)))
    except Exception:  # It is gone, or cannot be decoded so: then nothing is said.
        return []
    return tried


def _decoded(module: Any, content: bytes, mode: str, factor: int) -> float:
    """Seconds for decoding a picture, and for its conversion."""
    with module.open(io.BytesIO(content)) as image:
        if factor > 1:
            width, height = image.size
            image.draft(image.mode, (width // factor, height // factor))
        began = now()
        image.load()
        if mode:
            image.convert(mode)
        return now() - began
