"""Which of a session's new files later sessions of the examination may see: caches, but no results of training.

The first start of a program often builds caches that later starts read. Without them, every start would have to build
them again, which is slow and unlike the user's own later starts. A checkpoint or a log, on the other hand, would make
the next start resume, write to another folder, or refuse to run. The two are told apart by time: a file that was
finished before the first batch was requested was made for training; a later one was made by training. A new folder that
training wrote into holds results, and is removed as a whole. The caches of compilers, known by their names, are filled
by the first steps, and may stay if they were complete when the loop was found.

A file that existed before is always restored. At the end of the examination everything new is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

CACHES = frozenset(("__pycache__", ".cache", ".triton", ".nv", "torch_extensions"))
CACHE_PREFIXES = ("torchinductor_",)


@dataclass(frozen=True)
class Made:
    """A new path: when it was last changed (Unix time), and the topmost new folder around it ("" if none is new)."""

    path: str
    changed: float
    top: str
    is_folder: bool = False


@dataclass(frozen=True)
class Moments:
    """When a session requested its first batch, and when its loop was found, in Unix time."""

    first_batch: float
    found: float


NEVER = Moments(float("-inf"), float("-inf"))
"""For a session that trained at unknown times: none of its files is kept."""


def kept(made: Sequence[Made], moments: Moments | None) -> frozenset[str]:
    """The files to keep; none if the session never trained."""
    if moments is None:
        return frozenset()
    outcomes = {
        each.top for each in made if each.top and each.changed > moments.first_batch and not _in_cache(each.path)
    }
    return frozenset(
        each.path
        for each in made
        if not each.is_folder
        and (
            each.changed <= moments.found
            if _in_cache(each.path)
            else each.changed <= moments.first_batch and each.top not in outcomes
        )
    )


def may_hinder(paths: Iterable[str]) -> bool:
    """Whether a program may refuse to start because it finds some of these: they are no caches by their names."""
    return not all(map(_in_cache, paths))


def _in_cache(path: str) -> bool:
    """Whether a file lies in a cache of Python's or of a compiler's, by its name."""
    parts = PurePath(path).parts
    return any(part in CACHES or part.startswith(CACHE_PREFIXES) for part in parts)
