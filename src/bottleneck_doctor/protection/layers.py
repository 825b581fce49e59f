"""The layers that hold a sandboxed program's changes: made for an examination, pruned between its sessions.

There is one layer for each covered folder. A layer begins empty, with the owner, permissions and times of the folder
below it. After a session only the files that `retention.kept` names stay in it, so that the next start finds its caches
and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from bottleneck_doctor.protection import scratch
from bottleneck_doctor.protection.plan import Target, inside
from bottleneck_doctor.protection.retention import Made, Moments, kept

_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
"""Attributes that mark a layer's folder as hiding the one below: the program removed it and made it again."""


class Layers:
    """The layers in `folder`, one for each of `targets`. `passing`: files that every start puts there anew."""

    def __init__(self, folder: Path, targets: Sequence[Target], passing: frozenset[str] = frozenset()) -> None:
        self._folder = folder
        self._targets = list(targets)
        self._passing = passing

    def made(self, number: int) -> tuple[Path, Path]:
        """The layer of a target, and the empty work folder that overlayfs needs."""
        upper, work = self._folder / f"upper-{number}", self._folder / f"work-{number}"
        scratch.remove(work)
        work.mkdir(parents=True)
        if not upper.is_dir():
            upper.mkdir(parents=True)
            _look_alike(upper, Path(self._targets[number].path))
        return upper, work

    def prune(self, moments: Moments | None, copies: Sequence[str] = ()) -> frozenset[str]:
        """After a session: keep the caches that it built, and nothing if it never trained. Returns what is kept.

        `copies`: folders of the user's by another name.
        """
        every: frozenset[str] = frozenset()
        for number, target in enumerate(self._targets):
            upper = self._folder / f"upper-{number}"
            if upper.is_dir():
                made = [
                    each
                    for each in _made(str(upper), target.path, "")
                    if each.path not in self._passing and not any(inside(each.path, copy) for copy in copies)
                ]
                keep = kept(made, moments)
                every |= keep
                layered = frozenset(str(upper) + path[len(target.path.rstrip("/")) :] for path in keep)
                if layered:
                    _reduce(str(upper), target.path, layered)
                else:
                    scratch.remove(upper)
        return every


def _made(upper: str, lower: str, top: str) -> Iterator[Made]:
    """What a layer's folder adds to the folder below it, as the paths that the program sees."""
    for entry in _entries(upper):
        below = os.path.join(lower, entry.name)
        looks = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(looks.st_mode)
        if is_folder and not top and os.path.isdir(below):
            if not _hides(entry.path):
                yield from _made(entry.path, below, "")
            continue
        if not top and os.path.lexists(below):
            continue
        if is_folder:
            yield Made(below, looks.st_ctime, top or below, True)
            yield from _made(entry.path, below, top or below)
        elif stat.S_ISREG(looks.st_mode) or stat.S_ISLNK(looks.st_mode):
            yield Made(below, looks.st_ctime, top)


def _reduce(upper: str, lower: str, keep: frozenset[str]) -> bool:
    """Remove all but the files to keep and the folders around them. Returns whether anything is left."""
    left = False
    for entry in _entries(upper):
        below = os.path.join(lower, entry.name)
        if entry.path in keep:
            left = True
        elif entry.is_dir(follow_symlinks=False) and not _hides_something(entry.path, below):
            if _reduce(entry.path, below, keep):
                left = True
                if os.path.isdir(below):
                    _look_alike(Path(entry.path), Path(below))
            else:
                scratch.remove(Path(entry.path))
        elif entry.is_dir(follow_symlinks=False):
            scratch.remove(Path(entry.path))
        else:
            os.unlink(entry.path)
    return left


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _hides_something(folder: str, below: str) -> bool:
    return os.path.isdir(below) and _hides(folder)


def _hides(folder: str) -> bool:
    for name in _OPAQUE:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
    return False


def _look_alike(folder: Path, other: Path) -> None:
    """Copy owner, permissions and times to the layer, because the overlay shows those of the layer."""
    with contextlib.suppress(OSError):
        looks = other.stat()
        with contextlib.suppress(OSError):
            os.chown(folder, looks.st_uid, looks.st_gid)
        shutil.copystat(other, folder)
