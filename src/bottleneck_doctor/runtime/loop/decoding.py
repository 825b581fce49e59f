"""Decodes some JPEG pictures in both ways: whole, and at a part of their size."""

from __future__ import annotations

import io
import sys
from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..process.originals import now, open_file

PILLOW = "Pillow"
OPENCV = "OpenCV"
FACTORS = (8, 4, 2)
"""What JPEG's decoder can divide a size by."""
MOST_TRIED = 3
"""Pictures that are decoded in both ways."""
TIMES = 3
"""How often each is decoded in each way, of which the quickest counts: the first one finds cold caches, and any other
program may take the core for a while."""
MOST_SECONDS = 0.5
"""No further picture is tried after this long."""


def tried(files: Sequence[str], library: str, mode: str, factor: int) -> List[Tuple[float, float]]:
    """Seconds that each of some files takes whole, and at a part of its size, as this library decodes it. `mode`: what
    it is converted to; "": to nothing. Empty if one of them can't be decoded so."""
    found: List[Tuple[float, float]] = []
    until = now() + MOST_SECONDS
    try:
        decode = _DECODERS[library]
        for file in files:
            if len(found) >= MOST_TRIED or now() > until:
                break
            with open_file(file, "rb") as handle:
                content = handle.read()
            whole, reduced = (min(decode(content, mode, each) for _ in range(TIMES)) for each in (1, factor))
            found.append((whole, reduced))
    except Exception:  # It is gone, or cannot be decoded so: then nothing is said.
        return []
    return found


def _by_pillow(content: bytes, mode: str, factor: int) -> float:
    """Seconds for decoding a picture, and for its conversion."""
    module: Any = sys.modules["PIL.Image"]
    with module.open(io.BytesIO(content)) as image:
        if factor > 1:
            width, height = image.size
            image.draft(image.mode, (width // factor, height // factor))
        began = now()
        image.load()
        if mode:
            image.convert(mode)
        return now() - began


def _by_opencv(content: bytes, mode: str, factor: int) -> float:
    opencv: Any = sys.modules["cv2"]
    numpy: Any = sys.modules["numpy"]
    encoded = numpy.frombuffer(content, numpy.uint8)
    # `cv2.IMREAD_REDUCED_GRAYSCALE_2` is 16, and that for colours 17; for 4 and 8, twice and four times 16.
    flags = (8 * factor if factor > 1 else 0) + int(mode != "L")
    began = now()
    picture = opencv.imdecode(encoded, flags)
    seconds = now() - began
    if picture is None:
        raise ValueError("OpenCV can't decode it")
    return seconds


_DECODERS: Dict[str, Callable[[bytes, str, int], float]] = {PILLOW: _by_pillow, OPENCV: _by_opencv}
