"""Which files are opened to make batches. Opening is counted only while a batch is being made, in functions of Python
and of two libraries that read images without these."""

from __future__ import annotations

import functools
import io
import os
import stat
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

MOST_SIZED = 16
"""At most this many files of a batch are asked for their size."""

_OPENERS = (
    ("builtins", "open"),
    ("io", "open"),
    ("os", "open"),
    ("torchvision.io.image", "read_file"),
    ("torchvision.io", "read_file"),
    ("cv2", "imread"),
)
_OVER_A_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "lustre",
    "ceph",
    "gpfs",
    "beegfs",
    "9p",
    "afs",
    "glusterfs",
    "fuse.",
    "virtiofs",
)
_WRITES = frozenset("wax+")


class OpenCount:
    """Counts between `begin` and `end`. There is one in each process; it is not for several threads."""

    def __init__(self) -> None:
        self.opened = 0
        self.sized = 0
        self.size = 0
        self.example = ""
        self._inside = False
        self._pairs: List[Tuple[Any, str, Any, Any]] = []
        # Up to Python 3.10 pathlib keeps a reference of its own.
        pathlib = getattr(sys.modules.get("pathlib"), "_normal_accessor", None)
        owners = [(sys.modules.get(module), name) for module, name in _OPENERS]
        for owner, name in [*owners, (pathlib, "open")]:
            original = getattr(owner, name, None)
            if original is not None:
                self._pairs.append((owner, name, original, self._counting(original, flags=owner is os)))

    def begin(self) -> None:
        self.opened = self.sized = self.size = 0
        self.example = ""
        for owner, name, original, counting in self._pairs:
            if getattr(owner, name) is original:
                setattr(owner, name, counting)

    def end(self) -> None:
        for owner, name, original, counting in self._pairs:
            if getattr(owner, name) is counting:
                setattr(owner, name, original)

    def _counting(self, original: Callable[..., Any], *, flags: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def opening(*args: Any, **kwargs: Any) -> Any:
            if self._inside or not args:
                return original(*args, **kwargs)
            self._inside = True
            try:
                result = original(*args, **kwargs)
                mode = args[1] if len(args) > 1 else kwargs.get("flags" if flags else "mode")
                if not _writes(mode, flags=flags):
                    self._count(args[0])
                return result
            finally:
                self._inside = False

        return opening

    def _count(self, path: Any) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        if self.sized >= MOST_SIZED:
            self.opened += 1
            return
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return
        if not stat.S_ISREG(found.st_mode):
            return
        self.opened += 1
        self.sized += 1
        self.size += found.st_size
        self.example = self.example or os.path.abspath(os.fsdecode(path))


def used(batches: Sequence[Tuple[int, int, int, str]]) -> Optional[Dict[str, Any]]:
    """The files of some batches, as JSON values; None if there are none. Of each batch: how many were opened, of which
    some have so many bytes together, and one of them."""
    opened = sum(each[0] for each in batches)
    example = next((file for *_, file in batches if file), "")
    kind, remote = file_system(example) if example else ("", False)
    if not opened:
        return None
    return {
        "opened": opened,
        "sized": sum(each[1] for each in batches),
        "bytes": sum(each[2] for each in batches),
        "file_system": kind,
        "remote": remote,
    }


def _writes(mode: Any, *, flags: bool) -> bool:
    if flags:
        return isinstance(mode, int) and bool(mode & (os.O_WRONLY | os.O_RDWR))
    return isinstance(mode, str) and not _WRITES.isdisjoint(mode)


def file_system(path: str, mounts: Optional[str] = None) -> Tuple[str, bool]:
    """Type of the file system that `path` is on ("" if unknown), and whether it is a network file system.

    `mounts` is the text of /proc/self/mountinfo: see proc(5).
    """
    if mounts is None:
        try:
            with io.open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as handle:
                mounts = handle.read()
        except OSError:
            return "", False
        path = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        # Of several mounts on one point the last is what one sees.
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind, kind.startswith(_OVER_A_NETWORK)
