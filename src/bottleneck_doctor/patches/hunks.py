"""Hunks: runs of lines with what comes in their place, and where in a file they belong. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bottleneck_doctor.patches.lines import bare, end_of


@dataclass(frozen=True)
class HunkLine:
    """One line of a hunk: kept, removed or added. `text` has the line's end, or none where the file has none."""

    kind: Literal[" ", "-", "+"]
    text: str


@dataclass(frozen=True)
class Hunk:
    """`start`: line of the old file, counted from 1, at which it begins; with no old lines, the line behind which it is
    put (0: at the top)."""

    start: int
    lines: tuple[HunkLine, ...]

    @cached_property
    def old(self) -> list[str]:
        """Lines that it needs to find."""
        return [line.text for line in self.lines if line.kind != "+"]

    @cached_property
    def new(self) -> list[str]:
        """Lines that stand there afterwards."""
        return [line.text for line in self.lines if line.kind != "-"]

    @property
    def index(self) -> int:
        """Where it says that its old lines begin, counted from 0."""
        return self.start - 1 if self.old else self.start

    @cached_property
    def leading(self) -> int:
        """How many lines it keeps before its first change."""
        return next((at for at, line in enumerate(self.lines) if line.kind != " "), len(self.lines))

    @cached_property
    def trailing(self) -> int:
        """How many lines it keeps behind its last change."""
        return next((at for at, line in enumerate(reversed(self.lines)) if line.kind != " "), len(self.lines))

    def text(self) -> str:
        """As a patch shows it, without line ends that differ, for people to read."""
        old, new = len(self.old), len(self.new)
        body = "".join(f"{line.kind}{bare(line.text)}\n" for line in self.lines)
        return f"@@ -{self.start},{old} +{self.start},{new} @@\n{body}"


def reverse(hunks: Sequence[Hunk]) -> list[Hunk]:
    """The hunks that take these back."""
    swapped: dict[str, Literal[" ", "-", "+"]] = {"-": "+", "+": "-"}
    made = []
    shift = 0
    for hunk in hunks:
        begin = hunk.index + shift
        lines = tuple(HunkLine(swapped.get(line.kind, " "), line.text) for line in hunk.lines)
        made.append(Hunk(begin + 1 if hunk.new else begin, lines))
        shift += len(hunk.new) - len(hunk.old)
    return made


class DoesNotFit(Exception):
    """The lines that a hunk needs are not there. `number`: which hunk, counted from 1."""

    def __init__(self, number: int) -> None:
        super().__init__(f"hunk {number} does not fit")
        self.number = number


def applied(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """The lines of a file after `hunks`. Raises `DoesNotFit`.

    Every line that a hunk keeps or removes must be there; lines before it may have become more or fewer. Where no place
    fits exactly, one is taken that fits but for line ends, and there the file's own stay: a patch that went through an
    editor or a web page loses carriage returns.
    """
    try:
        return _applied(lines, hunks, exact=True)
    except DoesNotFit:
        return _applied(lines, hunks, exact=False)


def adapted(lines: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """The same where hunks are known to have lost line ends: the file's own are taken everywhere."""
    return _applied(lines, hunks, exact=False)


def edits(hunks: Sequence[Hunk]) -> list[Hunk]:
    """The changes in `hunks`, each by itself and without the lines around it. They fit at their own line and nowhere
    else."""
    made = []
    for hunk in hunks:
        at = hunk.index
        run: list[HunkLine] = []
        for line in (*hunk.lines, HunkLine(" ", "")):
            if line.kind != " ":
                run.append(line)
                continue
            if run:
                removed = sum(each.kind == "-" for each in run)
                made.append(Hunk(at + 1 if removed else at, tuple(run)))
                at += removed
                run = []
            at += 1
    return made


def _applied(lines: Sequence[str], hunks: Sequence[Hunk], *, exact: bool) -> list[str]:
    there = list(lines) if exact else [bare(line) for line in lines]
    made: list[str] = []
    done = moved = 0
    for number, hunk in enumerate(hunks, 1):
        old = hunk.old if exact else [bare(line) for line in hunk.old]
        place = _place(there, old, hunk, done, moved)
        if place is None:
            raise DoesNotFit(number)
        moved = place - hunk.index
        made += lines[done:place]
        done = place + len(old)
        made += _written(lines[place:done], hunk, exact, _end(lines, place))
        if done == len(lines) and not exact:
            _end_as(made, lines)
    return made + list(lines[done:])


def _place(there: Sequence[str], old: Sequence[str], hunk: Hunk, least: int, moved: int) -> int | None:
    """Where a hunk's old lines begin: as near as can be to where they are expected, never before `least`.

    A hunk that keeps no line behind its change stood at the end of the file, and does so still; one that keeps none
    before it, and is said to begin with line 1, stood at its top. One that keeps none at all has nothing but its line
    number to go by.
    """
    last = len(there) - len(old)
    expected = hunk.index + moved
    if not hunk.leading and not hunk.trailing:
        candidates = [hunk.index]
    elif not hunk.trailing:
        candidates = [last]
    elif not hunk.leading and hunk.start <= 1:
        candidates = [0]
    else:
        candidates = sorted(range(least, last + 1), key=lambda at: abs(at - expected))
    fits = (at for at in candidates if least <= at <= last and list(there[at : at + len(old)]) == list(old))
    return next(fits, None)


def _written(found: Sequence[str], hunk: Hunk, exact: bool, end: str) -> list[str]:
    """What stands in a hunk's place: kept lines as the file has them, new ones with the file's `end` where the hunk's
    own differ."""
    kept = iter(found)
    made = []
    for line in hunk.lines:
        if line.kind == "+":
            made.append(line.text if exact else bare(line.text) + end)
        else:
            own = next(kept)
            if line.kind == " ":
                made.append(own)
    return made


def _end(lines: Sequence[str], place: int) -> str:
    """How lines end around a place."""
    near = lines[place] if place < len(lines) else lines[-1] if lines else ""
    return end_of(near) or (end_of(lines[0]) if lines else "") or "\n"


def _end_as(made: list[str], lines: Sequence[str]) -> None:
    """Let the last line that was made end as the file did, and every other one with a line end."""
    end = _end(lines, 0)
    for at in range(len(made) - 1):
        made[at] = made[at] if made[at].endswith("\n") else made[at] + end
    if made and lines:
        made[-1] = bare(made[-1]) + end_of(lines[-1])
