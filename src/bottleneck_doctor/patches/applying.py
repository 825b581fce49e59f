"""A patch and the files that it is for in, what these become out. Nothing is written, so nothing is half done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.hunks import DoesNotFit, Hunk, applied, reverse
from bottleneck_doctor.patches.lines import bytes_of, lines_of
from bottleneck_doctor.patches.names import outside, prefixed, stripped
from bottleneck_doctor.patches.parsing import FilePatch, parse_patch

Read = Callable[[str], "bytes | None"]
"""The content of a file by its path, relative to the project and with `/`; None where there is none."""

_STALE = "Make the patch again for the files as they are now."


def apply_patch(patch: bytes, read: Read, *, source: str = "The patch") -> dict[str, bytes | None]:
    """What the files of a project become under `patch`, by their paths relative to it; None: the file is removed.

    The patch may come from `git diff`, `git format-patch` or `diff -u`, with the prefixes `a/` and `b/` or without
    (`-p1`, `-p0`: whatever names files that are there). Files may be made, removed, renamed and copied; changes of
    their modes are left out. Lines must match, but may have moved. `source` names the patch in messages.

    Raises `DoctorError` `patch-unreadable`, `patch-unsupported`, `patch-outside` where it names a file that is not in
    the project, and `patch-does-not-apply`, with the file and the hunk.
    """
    files = parse_patch(patch, source=source)
    for name in (name for file in files for name in (file.old, file.new)):
        if name is not None and outside(name):
            raise _outside(source, name)
    state = _State(read)
    folders = _folders(files, read)
    for file in files:
        _apply(file, folders, state, source)
    return state.changed()


@dataclass
class _State:
    """Files as they are, and as the sections before have left them."""

    read: Read
    made: dict[str, bytes | None] = field(default_factory=dict)

    def __getitem__(self, path: str) -> bytes | None:
        return self.made[path] if path in self.made else self.read(path)

    def __setitem__(self, path: str, content: bytes | None) -> None:
        self.made[path] = content

    def changed(self) -> dict[str, bytes | None]:
        return {path: content for path, content in self.made.items() if content != self.read(path)}


def _apply(file: FilePatch, folders: int, state: _State, source: str) -> None:
    old, new = _paths(file, folders, state, source)
    content = b"" if old is None else state[old]
    if old is not None and content is None:
        raise _no_fit(source, f"{old} is not there")
    if new is not None and new != old and state[new] not in (None, b""):
        raise _no_fit(source, f"it would make {new}, which is there already")
    after = _edited(content or b"", file.hunks, new or old or "", source)
    if new is None:
        if after:
            raise _no_fit(source, f"it would remove {old}, which holds more than the patch says")
        state[old or ""] = None
        return
    if old is not None and old != new and not file.copied:
        state[old] = None
    state[new] = after


def _edited(content: bytes, hunks: Sequence[Hunk], path: str, source: str) -> bytes:
    lines = lines_of(content)
    try:
        return bytes_of(applied(lines, hunks))
    except DoesNotFit as error:
        hunk = hunks[error.number - 1]
        which = f"hunk {error.number} of {path} (line {hunk.start})"
        if _is_applied(lines, hunks):
            why = f"it is made in {path} already"
        else:
            why = f"the lines that {which} changes are not there"
        raise _no_fit(source, why, hunk.text()) from error


def _is_applied(lines: Sequence[str], hunks: Sequence[Hunk]) -> bool:
    try:
        applied(lines, reverse(hunks))
    except DoesNotFit:
        return False
    return True


def _no_fit(source: str, why: str, detail: str = "") -> DoctorError:
    return DoctorError("patch-does-not-apply", f"{source} does not apply: {why}.", _STALE, detail=detail)


def _outside(source: str, name: str) -> DoctorError:
    return DoctorError(
        "patch-outside",
        f"{source} changes {name}, which is not in the project.",
        "Give a patch whose paths are relative to the project, as `git diff` writes them there.",
    )


def _paths(file: FilePatch, folders: int, state: _State, source: str) -> tuple[str | None, str | None]:
    """The paths of a section in the project, before and after. Raises `patch-outside`."""
    old, new = (None if name is None else stripped(name, _strip(file, folders)) for name in (file.old, file.new))
    for name, path in ((file.old, old), (file.new, new)):
        if name is not None and path is None:
            raise _outside(source, name)
    if file.moves or old is None or new is None:
        return old, new
    there = next((path for path in (new, old) if state[path] is not None), None)
    if there is None and _makes(file):
        return None, new
    return there or new, there or new


def _makes(file: FilePatch) -> bool:
    """Whether a section is of a file that need not be there: its only hunk has no old lines."""
    return len(file.hunks) == 1 and not file.hunks[0].old and file.hunks[0].start == 0


def _folders(files: Sequence[FilePatch], read: Read) -> int:
    """How many folders at the beginning of names are none of the project's: 1 as `a/` in `a/train.py`, or 0."""
    names = [name for file in files if not file.moves for name in (file.old, file.new) if name is not None]
    likely = (1, 0) if all(prefixed(name) for name in names) else (0, 1)
    return next((folders for folders in likely if _all_there(files, folders, read)), likely[0])


def _strip(file: FilePatch, folders: int) -> int:
    """How many folders to leave out of a section's names: what moves is named without a prefix."""
    return 0 if file.moves else folders


def _all_there(files: Sequence[FilePatch], folders: int, read: Read) -> bool:
    made: set[str] = set()
    for file in files:
        paths = list(_names(file, folders))
        if file.old is not None and not _makes(file):
            if not any(path in made or read(path) is not None for path in paths):
                return False
        elif not paths:
            return False
        made.update(paths)
    return True


def _names(file: FilePatch, folders: int) -> Iterator[str]:
    for name in (file.old, file.new):
        path = None if name is None else stripped(name, _strip(file, folders))
        if path is not None:
            yield path
