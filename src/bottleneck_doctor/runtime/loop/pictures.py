"""How long Pillow and OpenCV decode pictures, and JPEG that is decoded whole and made much smaller at once.

JPEG can be decoded at a half, a quarter or an eighth of its size for a part of the time (`Image.draft` of Pillow,
`IMREAD_REDUCED_COLOR_2` of OpenCV). What they decode, and what makes it smaller, is watched only while a batch is being
made. How long both ways of decoding take is tried afterwards, on a few of the same pictures (`decoding`).
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
from statistics import median
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ..process.originals import getpid, open_file, thread_time
from ..process.patches import Patches
from . import decoding
from .decoding import FACTORS, MOST_TRIED, OPENCV, PILLOW

Size = Tuple[int, int]
"""Width and height."""
JPEG = ("JPEG", "MPO")
"""What Pillow calls it. Some cameras write several pictures into a file."""
MOST_BYTES = 16 << 20
"""A picture that comes as bytes is kept to be tried if it has no more than these."""
_JPEG_NAMES = (".jpg", ".jpeg")
_JPEG_BEGINS = b"\xff\xd8"
OPENCV_MODES = {1: "RGB", 0: "L"}
"""What `cv2.IMREAD_COLOR` and `cv2.IMREAD_GRAYSCALE` decode. Pictures read by other flags count as needed whole."""
IGNORE_ORIENTATION = 128
_REDUCED = 16 | 32 | 64
"""The bits of OpenCV's flags for a half, a quarter and an eighth."""
_SHRINKERS = (
    ("PIL.Image", "Image", "resize"),
    ("cv2", "", "resize"),
    ("torchvision.transforms._functional_tensor", "", "resize"),
)


class Pictures(NamedTuple):
    """The pictures of a batch. `seconds` of processor time: for decoding pictures of any kind, and for the copies that
    `convert` makes. Waiting for a file is no part of it.

    `decoded`: how many were JPEG, of which `shrunk` were made smaller. `factor`: what the size of each could have been
    divided by when it was decoded, and still have been large enough; 1 if one was decoded at a part of its size.
    `mode`: what they were converted to, in Pillow's words; "" if they were not. `library`: which one decodes them.
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
    library: str
    file: str
    """One of them, which was `width` x `height` and became `used_width` x `used_height`."""


class _Decoded(NamedTuple):
    """A picture that was decoded. `file` is "" if it came as bytes, which `content` holds then."""

    size: Size
    library: str
    file: str
    content: Any


class PictureCount:
    """Watches between `begin` and `end`. There is one in each process; it is not for several threads."""

    def __init__(self) -> None:
        self._patches = Patches()
        self._written = 0
        """Pictures that came as bytes and were written into a file."""
        self.fits = math.inf
        """How many times larger than it was used the picture was that was decoded least too large."""
        self.reduced = 0
        """How many were decoded at a part of their size."""
        self._forget()

    def _forget(self) -> None:
        self._decoded = self._shrunk = 0
        self._seconds = 0.0
        self._factor = FACTORS[0]
        self.fits = math.inf
        self.reduced = 0
        self._mode = ""
        self._loaded: Optional[_Decoded] = None
        """The picture that was decoded last and not made smaller yet."""
        self._example: Optional[Tuple[_Decoded, Size]] = None
        """One of those made smaller, with the size that it got."""

    def begin(self) -> None:
        self._forget()
        files = getattr(sys.modules.get("PIL.ImageFile"), "ImageFile", None)
        opencv = sys.modules.get("cv2")
        if files is None and opencv is None:
            return
        self._patches.put(files, "load", self._loading)
        self._patches.put(files, "convert", self._converting)
        self._patches.put(opencv, "imread", self._reading)
        self._patches.put(opencv, "imdecode", self._reading)
        for module, kind, name in _SHRINKERS:
            owner = sys.modules.get(module)
            self._patches.put(getattr(owner, kind, None) if kind else owner, name, self._shrinking)

    def end(self) -> None:
        self._patches.take_off()

    def told(self, folder: str) -> Optional[Pictures]:
        """None if no picture was decoded. An example that came as bytes is written into `folder`, unless that is ""."""
        if not self._seconds:
            return None
        one, used = self._example or (_Decoded((0, 0), "", "", None), (0, 0))
        factor = self._factor if self._shrunk == self._decoded > 0 and not self.reduced else 1
        file = one.file or (self._kept(one.content, folder) if factor > 1 else "")
        return Pictures(
            self._seconds, self._decoded, self._shrunk, factor, *one.size, *used, self._mode, one.library, file
        )

    def _kept(self, content: Any, folder: str) -> str:
        """The file that holds a picture which came as bytes; "" if there is none."""
        if content is None or not folder or self._written >= MOST_TRIED:
            return ""
        path = os.path.join(folder, f"picture-{getpid()}-{self._written}")
        try:
            if len(content) > MOST_BYTES:
                return ""
            with open_file(path, "wb") as handle:
                handle.write(bytes(content))
        except Exception:  # The window is over, the disk full, or what held it closed: then it is not tried.
            return ""
        self._written += 1
        return path

    def _loading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def load(image: Any, *args: Any, **kwargs: Any) -> Any:
            if not getattr(image, "tile", None):  # It was decoded before.
                return original(image, *args, **kwargs)
            opened = getattr(image, "fp", None)
            file = getattr(image, "filename", "") or getattr(opened, "name", "")
            self.reduced += int((getattr(image, "decoderconfig", None) or (1,))[0] > 1)
            content = opened.getvalue() if self._example is None and isinstance(opened, io.BytesIO) else None
            began = thread_time()
            result = original(image, *args, **kwargs)
            self._seconds += thread_time() - began
            if getattr(image, "format", None) in JPEG:
                self._decoded += 1
                named = os.path.abspath(os.fsdecode(file)) if file and isinstance(file, (str, bytes)) else ""
                self._loaded = _Decoded(image.size, PILLOW, named, content)
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

    def _reading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def decode(*args: Any, **kwargs: Any) -> Any:
            began = thread_time()
            picture = original(*args, **kwargs)
            self._seconds += thread_time() - began
            with contextlib.suppress(Exception):  # Arguments unlike any: then nothing is known of this picture.
                flags = kwargs.get("flags", next((each for each in args if isinstance(each, int)), 1))
                self._read(picture, args[0] if args else next(iter(kwargs.values())), flags)
            return picture

        return decode

    def _read(self, picture: Any, source: Any, flags: int) -> None:
        """OpenCV has decoded a file or bytes."""
        size = size_of(picture)
        if size is None or not is_jpeg(source):
            return
        named = os.path.abspath(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else ""
        self._decoded += 1
        self.reduced += int(flags & _REDUCED > 0)
        mode = OPENCV_MODES.get(flags & ~IGNORE_ORIENTATION & ~_REDUCED)
        self._mode = mode or self._mode
        self._loaded = None if mode is None else _Decoded(size, OPENCV, named, None if named else source)

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

    def _resized(self, loaded: _Decoded, before: Optional[Size], after: Optional[Size], box: Any) -> None:
        size = loaded.size
        if before is None or after is None or before[0] * before[1] > size[0] * size[1] or not all(after):
            return
        if isinstance(box, tuple) and len(box) == 4:
            before = int(box[2] - box[0]), int(box[3] - box[1])
        self._shrunk += 1
        self.fits = min(self.fits, fits(before, after))
        self._factor = min(self._factor, divisor(before, after))
        if self._example is None:
            self._example = (loaded, after)


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


def is_jpeg(source: Any) -> bool:
    """Whether what OpenCV reads is JPEG: a file by its name, and bytes by how they begin."""
    if isinstance(source, (str, os.PathLike)):
        return os.fsdecode(source).lower().endswith(_JPEG_NAMES)
    return bytes(source[:2]) == _JPEG_BEGINS


def fits(before: Size, after: Size) -> float:
    """How many times larger a size is than another one, on the side where it is least."""
    return min(before[0] / after[0], before[1] / after[1])


def divisor(before: Size, after: Size) -> int:
    """By what JPEG's decoder can divide a size, so that it is still not smaller than what is made of it; 1: by
    nothing."""
    return next((factor for factor in FACTORS if factor <= fits(before, after)), 1)


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
    first = examples[0]
    files = [each.file for each in examples if each.library == first.library]
    tried = decoding.tried(files, first.library, first.mode, factor)
    if not tried:
        return None
    return {
        "library": first.library,
        "mode": first.mode,
        "factor": factor,
        "width": first.width,
        "height": first.height,
        "used_width": first.used_width,
        "used_height": first.used_height,
        "whole_seconds": median(whole for whole, _ in tried),
        "reduced_seconds": median(reduced for _, reduced in tried),
        "tried": len(tried),
    }
