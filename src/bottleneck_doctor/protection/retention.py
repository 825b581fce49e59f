"""Which of a session's new files the examination's later sessions may see: caches, and nothing that is an outcome.

The first start of a program often builds caches that later starts read. Were they thrown away, every start would build
them again: slow, and unlike what the user will see from now on. A checkpoint or a log that a session left, on the other
hand, would make the next one resume, number its folder on, or refuse. The line between them is time: what was finished
before the first batch was asked for was made to train with; what came later was made by training. A new folder that
training wrote into is a folder of outcomes, and all of it goes. Compilers' caches, which lie where caches lie, are
filled by the first steps and may stay if they were complete when the loop was found.

What existed before is never kept changed. At the end of the examination everything goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

CACHES = frozenset(("__pycache__", ".cache", ".triton", ".nv", "torch_extensions"))
CACHE_PREFIXES = ("torchinductor_",)


@dataclass(frozen=True)
class Made:
    """A new path: when it was changed last (Unix time), and the topmost new folder around it ("": none is new)."""

    path: str
    changed: float
    top: str
    is_folder: bool = False


@dataclass(frozen=True)
class Moments:
    """When, in Unix time, a session asked for its first batch, and when its loop was found."""

    first_batch: float
    found: float


NEVER = Moments(float("-inf"), float("-inf"))
"""Of a session that trained at nobody knows what times: nothing that it made is kept."""


def kept(made: Sequence[Made], moments: Moments | None) -> frozenset[str]:
    """The files to keep; none of a session that never trained."""
    if moments is None:
        return frozenset()
    outcomes = {each.top for each in made if each.top and each.changed > moments.first_batch and not _in_cache(each)}
    return frozenset(
        each.path
        for each in made
        if not each.is_folder
        and (
            each.changed <= moments.found
            if _in_cache(each)
            else each.changed <= moments.first_batch and each.top not in outcomes
        )
    )


def _in_cache(made: Made) -> bool:
    parts = PurePath(made.path).parts
    return any(part in CACHES or part.startswith(CACHE_PREFIXES) for part in parts)
