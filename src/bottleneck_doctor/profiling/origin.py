"""Whose code a file is: the user's own, or a library's. Paths as a profiler writes them go in, yes or no comes out.

Paths may be whole (`/home/me/train.py`) or, as py-spy writes them by default, shortened to the part below the folder
that is imported from (`torch/nn/modules/module.py`, `threading.py`, `train.py`).
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import PurePosixPath

_LIBRARY_FOLDER = re.compile(
    r"(^|/)(site-packages|dist-packages|lib(64)?/python\d[\d.]*t?|[Pp]ython\d+/Lib)/|(^|/)bin/[^/.]+$"
)
"""Folders in which Python keeps installed code; the entry scripts in `bin` are made by installers."""

_BINARY = re.compile(r"\.(so|dylib|dll|pyd|exe)(\.[\d.]+)?$|^ld-|^\[|^0x")
# fmt: off
_SHORT_NAMES = frozenset({
    "accelerate", "albumentations", "cv2", "datasets", "einops", "fsspec", "lightning", "lightning_fabric",
    "matplotlib", "monai", "numpy", "pandas", "PIL", "pytorch_lightning", "scipy", "sklearn", "timm",
    "tokenizers", "torch", "torch_geometric", "torchaudio", "torchdata", "torchmetrics", "torchvision", "tqdm",
    "transformers", "wandb", "webdataset",
})
# fmt: on
"""First folders of shortened paths that are libraries even where they are not installed on this machine."""

OWN_PACKAGE = "bottleneck_doctor"


class Origin:
    """Recognises the user's own files. `own_roots`: folders whose files count as the user's in any case."""

    def __init__(self, own_roots: Iterable[str | os.PathLike[str]] = ()) -> None:
        self._roots = [_plain(os.path.abspath(root)).rstrip("/") + "/" for root in own_roots]
        self._libraries = [folder.rstrip("/") + "/" for folder in _library_folders()]

    def is_own(self, path: str) -> bool:
        """Whether the user wrote this: no library, no generated code, nothing compiled, nothing of doctor's."""
        plain = _plain(path)
        if plain.startswith("<"):
            return plain.startswith(("<stdin", "<ipython"))
        if not plain or _BINARY.search(plain) or f"/{OWN_PACKAGE}/" in f"/{plain}":
            return False
        if not _is_whole(plain):
            return self._short_is_own(plain)
        for root in self._roots:
            if plain.startswith(root):
                # A project may hold its own environment.
                return _LIBRARY_FOLDER.search(plain[len(root) :]) is None
        return _LIBRARY_FOLDER.search(plain) is None and not any(plain.startswith(each) for each in self._libraries)

    def _short_is_own(self, path: str) -> bool:
        first, _, rest = path.partition("/")
        if first in _SHORT_NAMES or "." not in path:
            return False
        if rest and first in sys.stdlib_module_names:
            return False
        return not any(os.path.exists(folder + path) for folder in self._libraries)


def in_package(path: str, name: str) -> bool:
    """Whether a file belongs to the package (or single-file module) `name`, dotted names included."""
    wanted = name.replace(".", "/").strip("/")
    plain = "/" + _plain(path)
    return f"/{wanted}/" in plain or plain.endswith(f"/{wanted}.py")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {_plain(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(name)}
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin:
        folders.add(str(PurePosixPath(_plain(spec.origin)).parent))
    return tuple(sorted(folders))


def _plain(path: str | os.PathLike[str]) -> str:
    return os.fspath(path).replace("\\", "/")


def _is_whole(path: str) -> bool:
    return path.startswith("/") or re.match(r"[A-Za-z]:/", path) is not None
