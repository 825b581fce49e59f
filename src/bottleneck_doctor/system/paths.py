"""Compares paths by their text. Nothing is looked up on disk: the files may be on another machine."""

from __future__ import annotations

from pathlib import PurePosixPath


def same_file(one: str, other: str) -> bool:
    """Whether two paths may name one file. Profilers shorten paths, and either may be relative to the run's folder.

    An empty path names no file.
    """
    if not one or not other:
        return False
    parts, others = (PurePosixPath(name.replace("\\", "/")).parts for name in (one, other))
    short = min(len(parts), len(others))
    return parts[-short:] == others[-short:]
