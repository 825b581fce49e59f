"""The user's files while edits are made one after another: each as it is, and as the edits so far leave it. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.report import ChangedWords
from bottleneck_doctor.edits.project import Project


@dataclass(frozen=True)
class Told:
    """What an edit says of itself: a note, "" where its diff says all, and the line (of the file as it is) beside which
    it stands where there is no diff. `unfinished`: the note says what is still to be done by hand. `words`: what of it
    is done by words of the command line."""

    file: str
    line: int
    note: str = ""
    unfinished: bool = False
    words: tuple[ChangedWords, ...] = ()


@dataclass(frozen=True)
class OneFile:
    """A project of one file, for an edit that looks at no other."""

    source: str
    path: str = "source.py"

    def text(self, path: str) -> str | None:
        return self.source if path == self.path else None

    def module(self, name: str, importer: str) -> str | None:
        return None

    def file(self, written: str) -> str:
        return written


class Drafts:
    """A project whose texts are those that the edits so far have left."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._before: dict[str, str] = {}
        self._after: dict[str, str] = {}
        self._moved: dict[str, list[int]] = {}

    @property
    def as_they_are(self) -> Project:
        """The project without any edit."""
        return self._project

    def text(self, path: str) -> str | None:
        return self._after[path] if path in self._after else self._project.text(path)

    def module(self, name: str, importer: str) -> str | None:
        return self._project.module(name, importer)

    def file(self, written: str) -> str:
        return self._project.file(written)

    def write(self, path: str, text: str) -> None:
        before = self.text(path)
        assert before is not None
        moved = _moved(before.split("\n"), text.split("\n"))
        self._before.setdefault(path, before)
        self._moved[path] = [moved[line - 1] for line in self._moved.get(path, range(1, len(moved) + 1))]
        self._after[path] = text

    def line(self, path: str, line: int) -> int:
        """Where a line of the file as it is stands by now; both count from 1."""
        moved = self._moved.get(path, ())
        return moved[line - 1] if 0 < line <= len(moved) else line

    def changed(self) -> dict[str, tuple[str, str]]:
        """The files whose text is another by now: as they are, and as they would be."""
        pairs = {path: (self._before[path], after) for path, after in self._after.items()}
        return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def _moved(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """For each line of `before` its number in `after`: where it is, with whatever indentation by then, where what
    replaces it is, or where it would be."""
    old, new = [line.strip() for line in before], [line.strip() for line in after]
    places: list[int] = []
    for _, begin, end, there, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if 0 < end - begin < stop - there:
            places += [there + place + 1 for place in _likest(old[begin:end], new[there:stop])]
        else:
            places += [min(there + number, max(stop - 1, there)) + 1 for number in range(end - begin)]
    return [min(place, len(after)) for place in places]


def _likest(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """For lines that more lines replace, in their order: which of these each has become. The others were put between
    them, as the definition of what a changed line calls."""
    places: list[int] = []
    for number, line in enumerate(old):
        first = places[-1] + 1 if places else 0
        left = range(first, len(new) - (len(old) - number - 1))
        places.append(max(left, key=lambda place: difflib.SequenceMatcher(None, line, new[place]).ratio()))
    return places
