"""A patch as somebody wrote it in, what it does to each file out.

`unidiff` reads it. It knows the headers of git and of `diff -u`, the words around them (a commit's message, a mail) and
where a hunk ends; what it does not know of names, of line ends and of other languages' `diff` is put right here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.hunks import Hunk, HunkLine
from bottleneck_doctor.patches.lines import bare, lines_of
from bottleneck_doctor.patches.names import quoted, unquoted

if TYPE_CHECKING:
    from unidiff.patch import Hunk as ReadHunk
    from unidiff.patch import PatchedFile

_NOWHERE = "/dev/null"
_EPOCH = re.compile(r"(1969-12-31|1970-01-01) ")
"""When a file that isn't there was last changed, as `diff -N` has it."""
_GIT = "diff --git "
_MOVED = re.compile(r"(rename|copy) (from|to) (.+)")


@dataclass(frozen=True, kw_only=True)
class FilePatch:
    """What a patch does to one file. `old` is None where it is made, `new` where it is removed; both are names as the
    patch has them. `moves`: it is renamed or copied, and the names have no prefix; elsewhere either may be the file's.
    `copied`: the old file stays."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]
    moves: bool = False
    copied: bool = False


def parse_patch(patch: bytes, *, source: str) -> list[FilePatch]:
    """What `patch` does to each file, in its order. `source` names it in messages.

    Raises `DoctorError` `patch-unreadable` where it is no patch or is damaged, and `patch-unsupported` where it changes
    what is no text: a binary file, a link, a submodule.
    """
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    lines = _normal(lines_of(patch))
    reader = _Counting(lines)
    try:
        sections = PatchSet(reader)
    except UnidiffParseError as error:
        why = f"line {reader.number}: {str(error).partition(':')[0].strip().lower()}"
        raise unreadable(source, why) from error
    found = [_file_patch(section, source) for section in sections]
    if not found:
        raise unreadable(source, "it changes nothing")
    return found


def unreadable(source: str, why: str) -> DoctorError:
    return DoctorError(
        "patch-unreadable",
        f"{source} is not a patch that can be read: {why}.",
        "Give a patch as `git diff`, `git format-patch` or `diff -u` write it.",
    )


class _Counting:
    """Lines, and how many of them were taken: where a reader stopped."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            yield line


def _normal(lines: list[str]) -> list[str]:
    """Lines as `unidiff` reads them: with line feeds alone where all of them, headers too, have carriage returns; with
    the mark of a missing line end in English, which GNU diff writes in its user's language; and with quoted names where
    git's header does not tell which of its spaces parts the two."""
    if len(lines) > 1 and all(line.endswith("\r\n") for line in lines[:-1]):
        lines = [f"{bare(line)}\n" for line in lines]
    made = [
        "\\ No newline at end of file\n" if line.startswith("\\ ") and at and lines[at - 1][0] in " +-" else line
        for at, line in enumerate(lines)
    ]
    for at, line in enumerate(made):
        if line.startswith(_GIT) and line.count(" ") > 3 and '"' not in line:
            _quote_names(made, at)
    return made


def _quote_names(lines: list[str], at: int) -> None:
    """Write the names of the section that begins at line `at` without spaces, if they can be told apart."""
    end = at + 1
    while end < len(lines) and not lines[end].startswith(("@@ ", _GIT)):
        end += 1
    moved = {found[2]: found[3] for line in lines[at + 1 : end] if (found := _MOVED.fullmatch(bare(line)))}
    words = bare(lines[at]).removeprefix(_GIT).split(" ")
    for middle in range(1, len(words)):
        old, new = " ".join(words[:middle]), " ".join(words[middle:])
        if moved:
            fits = old.endswith(moved.get("from", "")) and new.endswith(moved.get("to", ""))
        else:
            fits = old == new or old.partition("/")[2] == new.partition("/")[2] != ""
        if fits:
            lines[at] = f"{_GIT}{_spaceless(old)} {_spaceless(new)}\n"
            break
    for number in range(at + 1, end):
        mark, name = lines[number][:4], bare(lines[number][4:]).partition("\t")[0]
        if mark in ("--- ", "+++ "):
            lines[number] = f"{mark}{_spaceless(name)}\n"


def _spaceless(name: str) -> str:
    """A name in quotation marks, its spaces escaped: nobody asks for that, but everybody reads it."""
    inside = quoted(name)
    return f'"{inside[1:-1] if inside != name else inside}"'.replace(" ", "\\040") if " " in name else name


def _file_patch(section: PatchedFile, source: str) -> FilePatch:
    old, new = unquoted(section.source_file), unquoted(section.target_file)
    for kind, is_kind in (
        ("a binary file", section.is_binary_file),
        ("a symbolic link", section.is_symlink),
        ("a submodule", section.is_submodule),
    ):
        if is_kind:
            raise DoctorError(
                "patch-unsupported",
                f"{source} changes {kind}, {new if new != _NOWHERE else old}.",
                "Give a patch that changes text files only.",
            )
    moved = {
        (found[1], found[2]): unquoted(found[3])
        for line in section.patch_info or ()
        if (found := _MOVED.fullmatch(line.rstrip("\r\n")))
    }
    copied = ("copy", "to") in moved
    how = "copy" if copied else "rename"
    if (how, "from") in moved and (how, "to") in moved:
        old, new = moved[how, "from"], moved[how, "to"]
    hunks = tuple(_hunk(each) for each in section)
    is_made = old == _NOWHERE or (_is_epoch(section.source_timestamp) and not any(hunk.old for hunk in hunks))
    is_removed = new == _NOWHERE or (_is_epoch(section.target_timestamp) and not any(hunk.new for hunk in hunks))
    if not old or not new:
        raise unreadable(source, "it does not say which file it changes")
    changes = hunks or moved or is_made or is_removed or section.source_mode != section.target_mode
    if not changes or (is_made and is_removed):
        raise unreadable(source, f"it names {new} and says nothing of its lines")
    return FilePatch(
        old=None if is_made else old,
        new=None if is_removed else new,
        hunks=hunks,
        moves=bool(moved),
        copied=copied,
    )


def _is_epoch(stamp: str | None) -> bool:
    return stamp is not None and _EPOCH.match(stamp) is not None


def _hunk(read: ReadHunk) -> Hunk:
    lines: list[HunkLine] = []
    for line in read:
        if line.line_type == "\\" and lines:
            last = lines.pop()
            lines.append(HunkLine(last.kind, last.text.removesuffix("\n")))
        elif line.is_added:
            lines.append(HunkLine("+", _ended(line.value)))
        elif line.is_removed:
            lines.append(HunkLine("-", _ended(line.value)))
        elif line.is_context:
            lines.append(HunkLine(" ", _ended(line.value)))
    return Hunk(read.source_start, tuple(lines))


def _ended(line: str) -> str:
    """A line with its end, which the last one of a patch may have lost."""
    return line if line.endswith("\n") else f"{line}\n"
