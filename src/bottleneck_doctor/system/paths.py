"""What the text of paths tells. Nothing is looked up: the files may lie on another machine."""

from __future__ import annotations

from pathlib import PurePosixPath


def same_file(one: str, other: str) -> bool:
    """Whether two names may be of one file: profilers shorten paths, and either may be relative to the run's folder.

    An empty name is no file's.
    """
    if not one or not other:
        return False
    parts, others = (PurePosixPath(name.replace("\\", "/")).parts for name in (one, other))
    short = min(len(parts), len(others))
    return parts[-short:] == others[-short:]
