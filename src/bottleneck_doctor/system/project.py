"""Which folder is the project that files belong to, and how they are called there. Asks the disk, and no program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

LIBRARIES = ("site-packages", "dist-packages")
"""Folders that hold what was installed. No project's own files lie in one, even if it holds its environment."""


def repository_of(folder: Path) -> Path | None:
    """The root of the repository that holds `folder`; None where there is none."""
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def project_of(files: Sequence[Path], folder: Path) -> Path:
    """The folder that patches name `files` by: the root of the repository that holds the first of them, where `git
    apply` works; without one `folder`, where it holds that file, or else the file's own."""
    own = [each for each in files if not is_installed(each.resolve())]
    if not own:
        return folder.resolve()
    first = own[0].resolve()
    found = repository_of(first.parent)
    if found is not None:
        return found
    here = folder.resolve()
    return here if first.is_relative_to(here) else first.parent


def path_in(project: Path, file: Path) -> str:
    """What `file` is called in `project`, with `/`; "" where it lies elsewhere, or was installed. A link is called as
    what it leads to, which is what an edit changes."""
    whole = file.resolve()
    return whole.relative_to(project).as_posix() if whole.is_relative_to(project) and not is_installed(whole) else ""


def is_installed(whole: Path) -> bool:
    """Whether a path lies among what was installed."""
    return any(each in LIBRARIES for each in whole.parts)


def located(file: Path, path: str, folders: Sequence[Path]) -> Path | None:
    """Where a file is that was `file` on the machine where it was read: there, or called `path` in one of `folders`,
    as in another clone of the project; None where it is nowhere."""
    candidates = [file, *(folder / path for folder in folders if path)]
    return next((each for each in candidates if os.path.isfile(each)), None)
