"""What differs between two revisions, line by line: the output of `git diff -U0` in, changed and corresponding lines
out.

Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from bottleneck_doctor.patches.lines import lines_of
from bottleneck_doctor.runtime.wire.notebooks import SOURCES, program_of

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Hunk:
    """`old_lines` lines from `old` were replaced by `new_lines` lines from `new`; counted from 1.

    For an empty stretch, it is the line before it, as in a diff.
    """

    old: int
    old_lines: int
    new: int
    new_lines: int


@dataclass(frozen=True)
class Differences:
    """Hunks by the file's path on the head, and renamed files."""

    hunks: Mapping[str, list[Hunk]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Paths on the head, by the path on the base."""
    known: bool = True
    """Whether the differences could be read."""

    def on_head(self, path: str, line: int) -> tuple[str, int] | None:
        """Where a line of the base is on the head; None if it was changed or removed."""
        shift = 0
        path = self.renamed.get(path, path)
        for hunk in self.hunks.get(path, ()):
            first = hunk.old + (hunk.old_lines == 0)
            if line < first:
                break
            if line < first + hunk.old_lines:
                return None
            shift = hunk.new + (hunk.new_lines == 0) + hunk.new_lines - first - hunk.old_lines
        return path, line + shift

    @property
    def code(self) -> bool:
        """Whether lines of Python differ."""
        return any(path.endswith(SOURCES) for path, hunks in self.hunks.items() if hunks)

    def changed(self, path: str, line: int) -> bool:
        """Whether a line of the head is new or was changed."""
        return any(hunk.new <= line < hunk.new + hunk.new_lines for hunk in self.hunks.get(path, ()))


def between(path: str, old: bytes, new: bytes) -> list[Hunk]:
    """What differs in a file; of a notebook, in its program."""
    before, after = (lines_of(program_of(path, each)) for each in (old, new))
    return [
        Hunk(begin + (end > begin), end - begin, begin_new + (end_new > begin_new), end_new - begin_new)
        for kind, begin, end, begin_new, end_new in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if kind != "equal"
    ]


def read(diff: str) -> Differences:
    """Read what `git diff -U0 --no-color --no-prefix` printed."""
    hunks: defaultdict[str, list[Hunk]] = defaultdict(list)
    renamed: dict[str, str] = {}
    old = new = ""
    left = 0
    """Remaining lines of the current hunk. They may look like headers, so they are skipped by number."""
    for line in diff.split("\n"):
        if left > 0 and line[:1] in ("+", "-"):
            left -= 1
        elif line.startswith("diff --git "):
            old = new = ""
        elif line.startswith("rename from "):
            old = _unquoted(line[12:])
        elif line.startswith("rename to "):
            new = _unquoted(line[10:])
            renamed[old] = new
        elif line.startswith("--- "):
            old = _unquoted(line[4:])
        elif line.startswith("+++ "):
            new = _unquoted(line[4:])
        elif found := _HUNK.match(line):
            numbers = [int(number) if number is not None else 1 for number in found.groups()]
            left = numbers[1] + numbers[3]
            if new != "/dev/null":
                hunks[new].append(Hunk(*numbers))
    return Differences(dict(hunks), renamed)


def _unquoted(path: str) -> str:
    """The plain path: git puts unusual ones into quotes, and a tab behind those with blanks."""
    path = path.removesuffix("\t")
    if len(path) > 1 and path[0] == path[-1] == '"':
        raw = path[1:-1].encode("utf-8", "surrogateescape")
        return raw.decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "replace")
    return path
