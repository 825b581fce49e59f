"""The user's files, as edits may look at them: texts by path, and paths by the names that a program has for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from bottleneck_doctor.runtime.wire.notebooks import program_of
from bottleneck_doctor.system.project import is_installed


class Project(Protocol):
    """What an edit may ask for. Paths are absolute."""

    def text(self, path: str) -> str | None:
        """A file's text with the line ends and the byte order mark that it has; None where it can't be read."""

    def module(self, name: str, importer: str) -> str | None:
        """The file of the module that the file `importer` imports as `name`, which begins with dots where the import is
        relative; None where it is none of the user's."""

    def file(self, written: str) -> str:
        """The path of a file that the program names, from the folder in which it is started."""


class FilesOnDisk:
    """The files as they are now. `folder`: where the program is started."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = os.getcwd() if folder is None else folder

    def text(self, path: str) -> str | None:
        try:
            # Bytes: reading as text would make every line end "\n", and an edited file would lose its own.
            return program_of(path, Path(path).read_bytes()).decode("utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None

    def module(self, name: str, importer: str) -> str | None:
        bare = name.lstrip(".")
        beside = Path(importer).parent
        dots = len(name) - len(bare)
        # A module of a package imports others from where the package lies.
        roots = [beside, *beside.parents][dots - 1 : dots] if dots else [beside, Path(self._folder), *beside.parents]
        for root in roots:
            stem = root.joinpath(*filter(None, bare.split(".")))
            for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
                if not is_installed(path) and path.is_file():
                    return str(path)
        return None

    def file(self, written: str) -> str:
        return os.path.normpath(os.path.join(self._folder, os.path.expanduser(written)))
