"""The edited side where no sandbox can show the edits in place: a folder of ours that is shaped like the project.

Python code is copied, because Python looks for the neighbours of a script, and code for its own, where a link leads.
So are small files beside it, which may be written, as logs are. Everything else is a link to the user's: large files,
and folders without code. The edits are made in the copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.gate.sides.tree import (
    Project,
    Tree,
    holds_code,
    is_environment,
    link_siblings,
    map_imports,
)
from bottleneck_doctor.protection import scratch

_FOLDER = "edited"
_CACHE = "__pycache__"
_LARGEST = 16 * 1024 * 1024
"""Bytes. Nobody writes more code by hand into one file."""
_SMALL = 1024 * 1024
"""Bytes up to which other files beside code are copied, as far as there is room."""
_ROOM = 64 * 1024 * 1024
"""Bytes of them in all: a data set may lie beside code too."""


@contextlib.contextmanager
def copied(
    project: Project, files: Mapping[str, bytes | None], *, python: str, python_path: str | None, why: str
) -> Iterator[Tree]:
    """The project with edited `files` (by path from its root; None: removed) for as long as the context lasts.

    `python_path`: the PYTHONPATH that the program is started with; None: as in this process. `why`: why a copy is
    needed, as part of a sentence.
    Raises `DoctorError` `project-not-copied`.
    """
    _check(project, files, why)
    folder = scratch.new_folder(users=True)
    try:
        # By the project's own name, so that a path by way of its parent leads here too.
        root = Path(os.path.realpath(folder)) / _FOLDER / (project.root.name or _FOLDER)
        root.mkdir(parents=True)
        inside = project.cwd.is_relative_to(project.root)
        tree = Tree(root, root / project.cwd.relative_to(project.root) if inside else project.cwd)
        try:
            _Copy(project.root, root, tree.cwd, files).make()
        except OSError as error:
            raise DoctorError(
                "project-not-copied",
                f"The project can't be copied to be edited: {reason_of(error)}.",
                "The temporary folder must have room for its code. Set TMPDIR to a folder that has it.",
            ) from error
        link_siblings(project.root, root)
        otherwise = "the edited program may import the code as written"
        given = os.environ.get("PYTHONPATH", "") if python_path is None else python_path
        map_imports(project, tree, folder, python, given, otherwise=otherwise)
        # Git looks at the user's repository through a link, and must not write down what it finds here.
        tree.environment["GIT_OPTIONAL_LOCKS"] = "0"
        yield tree
    finally:
        scratch.remove(folder)


def _check(project: Project, files: Mapping[str, bytes | None], why: str) -> None:
    if project.root in (Path("/"), Path.home().resolve()):
        raise DoctorError(
            "project-not-copied",
            f"The edit needs a copy of the project, because {why}, and {project.root} is no project to copy.",
            "Run it in the folder of your project.",
        )
    for path in files:
        if any(_is_nobodys(project.root / part) for part in Path(path).parents):
            raise DoctorError(
                "project-not-copied",
                f"The edit needs a copy of the project, because {why}, and a copy can't hold {path}, which belongs to "
                "an environment.",
                "Make the edit in an environment of its own, and compare two runs with `doctor compare`.",
            )


class _Copy:
    """Lays out the project at `source` in `target`. `cwd`: the working folder there, which is a folder of its own."""

    def __init__(self, source: Path, target: Path, cwd: Path, files: Mapping[str, bytes | None]) -> None:
        self._source = source
        self._target = target
        self._cwd = cwd
        self._room = _ROOM
        self._files = {target / path: content for path, content in files.items()}
        # What they lie in can't be a link: it holds something else than the user's.
        self._own = {parent for path in (*self._files, cwd / "_") for parent in path.parents}

    def make(self) -> None:
        """Raises `OSError`."""
        self._folder(self._source, self._target)
        for path, content in self._files.items():
            if content is None:
                self._remove_empty(path.parent)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            # Behind a link lies what is the user's.
            if os.path.realpath(path) != str(path):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            path.write_bytes(content)
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(self._source / path.relative_to(self._target), path)

    def _remove_empty(self, folder: Path) -> None:
        """Remove folders that held nothing but what was removed: Python would import them as packages."""
        with contextlib.suppress(OSError):
            while folder not in (self._target, self._cwd):
                folder.rmdir()
                folder = folder.parent

    def _folder(self, source: Path, target: Path) -> None:
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.name != _CACHE and target / entry.name not in self._files:
                    self._entry(entry, target / entry.name)

    def _entry(self, entry: os.DirEntry[str], target: Path) -> None:
        source = Path(entry.path)
        if entry.is_symlink():
            target.symlink_to(self._leads(source, target))
        elif entry.is_dir() and (target in self._own or (not _is_nobodys(source) and holds_code(source))):
            target.mkdir()
            self._folder(source, target)
        elif _is_code(entry) or self._is_small(entry):
            shutil.copy2(source, target)
        else:
            target.symlink_to(source)

    def _is_small(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_file() or not os.access(entry.path, os.R_OK):
            return False
        size = entry.stat().st_size
        if size > min(_SMALL, self._room):
            return False
        self._room -= size
        return True

    def _leads(self, source: Path, target: Path) -> Path:
        """Where a link of the project leads in the copy: to the copy of what is in the project."""
        real = Path(os.path.realpath(source))
        if not real.is_relative_to(self._source):
            return real
        return Path(os.path.relpath(self._target / real.relative_to(self._source), target.parent))


def _is_code(entry: os.DirEntry[str]) -> bool:
    is_file = entry.name.endswith(".py") and entry.is_file()
    return is_file and entry.stat().st_size <= _LARGEST and os.access(entry.path, os.R_OK)


def _is_nobodys(folder: Path) -> bool:
    """Whether what is in a folder is no part of the project: git's own, an environment."""
    return folder.name in (".git", "node_modules") or is_environment(folder)
