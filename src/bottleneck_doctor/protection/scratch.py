"""Temporary folders of the doctor's own, and the removal of those that a killed doctor had to leave behind.

Nothing runs after `kill -9`, so the next doctor of the same user clears up: every folder names its owner, and one whose
owner is gone is removed, after the changes to the user's files that a journal in it names were undone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import journal

PREFIX = "bottleneck-doctor-"
_OWNER = ".owner"
_STARTED = 19
"""Where a process's start stands in /proc/PID/stat behind its name: field 22 of proc(5)."""

_own: set[Path] = set()


def new_folder(parent: Path | None = None, *, users: bool = False) -> Path:
    """A new folder in `parent` (the usual place for temporary files where None), private to this user and process.

    `users`: what will lie in it is treated as files of the user's, so that an examined program's changes are undone.
    Raises `DoctorError` `temporary-unwritable`.
    """
    folder: Path | None = None
    try:
        where = Path(tempfile.gettempdir()) if parent is None else parent
        sweep(where)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        (folder / _OWNER).write_text(_name_of(os.getpid()), encoding="ascii")
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise DoctorError(
            "temporary-unwritable",
            f"Doctor can't create a temporary folder: {error.strerror or error}.",
            "Free some space in the folder for temporary files, or set TMPDIR to another folder.",
        ) from error
    if not users:
        _own.add(folder)
    return folder


def own_folders() -> list[Path]:
    """The folders that this process made and has not removed."""
    return sorted(_own)


@contextlib.contextmanager
def borrowed() -> Iterator[Path]:
    """An empty folder for as long as the context lasts."""
    folder = new_folder()
    try:
        empty = folder / "files"
        empty.mkdir()
        yield empty
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder, as far as that is possible."""
    _own.discard(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        # Folders that nobody may read: the kernel makes one in an overlay, and programs may make more.
        for inner, _, _ in os.walk(folder):
            _open(inner)
        shutil.rmtree(folder, ignore_errors=True)


def _open(folder: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)


def sweep(where: Path) -> None:
    """Remove the folders in `where` whose owners are gone. Folders of others, and of no known owner, stay."""
    with contextlib.suppress(OSError):
        # Newest first: journals are undone in the reverse of the order in which they were written.
        for folder in sorted(where.glob(PREFIX + "*"), key=_age):
            with contextlib.suppress(OSError, ValueError):
                owner = (folder / _OWNER).read_text(encoding="ascii")
                if _is_mine(folder) and _name_of(int(owner.split()[0])) != owner:
                    journal.undo(journal.read(folder / journal.FOLDER))
                    remove(folder)


def _age(folder: Path) -> float:
    try:
        return -(folder / _OWNER).stat().st_mtime
    except OSError:
        return 0.0


def _is_mine(folder: Path) -> bool:
    return not folder.is_symlink() and (not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid())


def _name_of(pid: int) -> str:
    """A process by number and start, since numbers are used again."""
    try:
        stat = Path(f"/proc/{pid}/stat")
        if sys.platform == "linux":
            # In clock ticks since the machine was started. The time of day would be another one once somebody sets the
            # clock, and a living process would be taken for a dead one.
            started = f"started {int(stat.read_bytes().rpartition(b')')[2].split()[_STARTED])}"
        else:
            started = f"{psutil.Process(pid).create_time():.2f}"
        return f"{pid} {started}"
    except (OSError, psutil.Error):
        return f"{pid} gone"
