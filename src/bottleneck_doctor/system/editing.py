"""Files of the user's, edited: all of them or none, each as readable and as executable as it was.

A file is replaced as a whole, so nobody ever reads half of one, and the file that a link leads to is the one that is
edited.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileEdit:
    """What a file is and what it is to be."""

    path: Path
    before: bytes
    after: bytes


class ChangedMeanwhile(Exception):
    """A file is no longer what it was when the edit was made up. `path`: which."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} changed meanwhile")
        self.path = path


def check_editable(path: Path) -> None:
    """Raise `PermissionError` where `path` is write-protected, which replacing it would pass over."""
    mode = os.stat(path).st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise PermissionError(13, "it is write-protected", str(path))


def edit_all(edits: Sequence[FileEdit]) -> None:
    """Make all edits, or none: what was edited before one fails is put back.

    Raises `OSError`, and `ChangedMeanwhile` where a file is not as `FileEdit.before` has it.
    """
    with contextlib.ExitStack() as staged:
        ready = [(_Staged(edit, staged), edit) for edit in edits]
        done: list[_Staged] = []
        try:
            for each, edit in ready:
                if each.target.read_bytes() != edit.before:
                    raise ChangedMeanwhile(edit.path)
                done.append(each)
                os.replace(each.new, each.target)
        except BaseException:
            for each in reversed(done):
                # Both copies lie on the disk already: putting one back takes no space.
                with contextlib.suppress(OSError):
                    os.replace(each.old, each.target)
            raise


class _Staged:
    """What a file is and is to be, each written beside it under a name of its own, and removed again in the end."""

    def __init__(self, edit: FileEdit, staged: contextlib.ExitStack) -> None:
        self.target = Path(os.path.realpath(edit.path))
        self.new = self._copy(edit.after, staged)
        self.old = self._copy(edit.before, staged)

    def _copy(self, content: bytes, staged: contextlib.ExitStack) -> Path:
        copy = self.target.with_name(f".doctor-{secrets.token_hex(8)}")
        staged.callback(copy.unlink, missing_ok=True)
        known = os.stat(self.target)
        with copy.open("xb") as stream:
            stream.write(content)
        with contextlib.suppress(OSError):  # Another's file that we may write: it becomes ours, as with any editor.
            os.chown(copy, known.st_uid, known.st_gid)
        os.chmod(copy, stat.S_IMODE(known.st_mode))
        return copy
