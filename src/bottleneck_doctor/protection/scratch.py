"""Doctor's temporary folders, and the removal of those that a killed doctor left behind.

After `kill -9` nothing can clean up, so the next doctor of the same user does it. Every folder names the process that
owns it. If that process is gone, the changes in the folder's journal are undone, and the folder is removed.
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
"""The place of a process's start time in /proc/PID/stat after its name: field 22 of proc(5)."""

_own: set[Path] = set()


def new_folder(parent: Path | None = None, *, users: bool = False) -> Path:
    """A new folder in `parent` (None: the usual place for temporary files), private to this user and process.

    `users`: the files in it count as the user's, so that an examined program's changes to them are undone.
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
    """An empty folder that is removed at the end of the context."""
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
        # Some folders have no permissions: the kernel makes one in an overlay, and programs may make more.
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
    """Remove the folders in `where` whose owners are gone. Folders of other users or of unknown owners stay."""
    with contextlib.suppress(OSError):
        # Newest first: journals are undone in the reverse of the order in which they were written.
        for folder in sorted(where.glob(PREFIX + "*"), key=_age):
            with contextlib.suppress(OSError, ValueError):
                owner = (folder / _OWNER).read_text(encoding="ascii")
                # Nothing stands in it yet if its process is just making the folder: then this is no number.
                if _is_mine(folder) and _name_of(int(owner.partition(" ")[0])) != owner:
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
    """Names a process by its id and its start time, because ids are used again."""
    try:
        stat = Path(f"/proc/{pid}/stat")
        if sys.platform == "linux":
            # In clock ticks since the machine was started. In the time of day, a living process would be taken for a
            # dead one once somebody sets the clock.
            started = f"started {int(stat.read_bytes().rpartition(b')')[2].split()[_STARTED])}"
        else:
            started = f"{psutil.Process(pid).create_time():.2f}"
        return f"{pid} {started}"
    except (OSError, psutil.Error):
        return f"{pid} gone"
