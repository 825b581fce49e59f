"""Changes of a report in, what they make of the user's files out: one after another, or several at once. Pure.

Every change is a diff of a file as it was when the report was written. So several of one file are put together by their
lines: where two differ in what they make of the same ones, the later is left out, and said.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from bottleneck_doctor.documents.report import Change, SourceFile, Sources
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.hunks import DoesNotFit, Hunk, adapted, edits, reverse
from bottleneck_doctor.patches.kept import digest
from bottleneck_doctor.patches.lines import bytes_of, lines_of
from bottleneck_doctor.patches.parsing import parse_patch
from bottleneck_doctor.runtime.wire.notebooks import ENDING, cell_of, is_notebook, program_of, put_back

Why = Literal["no-diff", "unknown", "outside", "conflict"]
"""Why a change is not made: it has no diff, its file was not kept (in a report of an earlier release), lies outside of
the project, or another change makes something else of the same lines."""


@dataclass(frozen=True)
class LeftOut:
    """A change that is left to the user."""

    change: Change
    why: Why


@dataclass(frozen=True)
class PlannedFile:
    """A file and its edits, in the order of its lines."""

    source: SourceFile
    edits: tuple[Hunk, ...]


@dataclass(frozen=True)
class Plan:
    """What is made of which file, and what is not made."""

    files: list[PlannedFile] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def plan(changes: Iterable[Change], sources: Sources | None) -> Plan:
    """How `changes` are made together."""
    known = {} if sources is None else {source.file: source for source in sources.files}
    made: dict[str, list[Hunk]] = {}
    left_out = []
    for change in changes:
        source = known.get(change.file)
        why, found = _edits(change, source)
        if why is None and any(_clash(each, other) for each in found for other in made.get(change.file, [])):
            why = "conflict"
        if why is not None:
            left_out.append(LeftOut(change, why))
            continue
        here = made.setdefault(change.file, [])
        here += [each for each in found if each not in here]
    files = [PlannedFile(known[file], tuple(sorted(each, key=_order))) for file, each in made.items()]
    return Plan(files, left_out)


def _edits(change: Change, source: SourceFile | None) -> tuple[Why | None, list[Hunk]]:
    if not change.diff:
        return "no-diff", []
    if source is None:
        return "unknown", []
    if not source.path:
        return "outside", []
    try:
        return None, edits_of(change.diff)
    except DoctorError:
        return "unknown", []


def edits_of(diff: str) -> list[Hunk]:
    """The edits of a diff without headers. Raises `DoctorError` `patch-unreadable`."""
    patch = b"--- a/file\n+++ b/file\n" + diff.encode("utf-8", "surrogateescape")
    return edits([hunk for file in parse_patch(patch, source="The change") for hunk in file.hunks])


def _order(edit: Hunk) -> tuple[int, int]:
    """What is put before a line comes before what is made of that line."""
    return edit.index, len(edit.old)


def _clash(one: Hunk, other: Hunk) -> bool:
    """Whether two edits are of the same lines and not the same. Lines that are put into one place don't clash."""
    if one == other:
        return False
    begin, end = max(one.index, other.index), min(one.index + len(one.old), other.index + len(other.old))
    if one.old and other.old:
        return begin < end
    inserted, around = (one, other) if not one.old else (other, one)
    return around.index < inserted.index < around.index + len(around.old)


def after(planned: PlannedFile, content: bytes) -> bytes | None:
    """What a file becomes, `content` being what it was; None where the edits don't fit it, or break it."""
    file = planned.source.file
    text = program_of(file, content)
    try:
        made = bytes_of(adapted(lines_of(text), planned.edits))
    except DoesNotFit:
        return None
    fits = _compiles(planned.source, made) or not _compiles(planned.source, text)
    return put_back(file, content, made) if fits else None


def before(planned: PlannedFile, content: bytes) -> bytes | None:
    """What a file was whose edits are made already, `content` being what it is; None where they are not."""
    file = planned.source.file
    try:
        made = bytes_of(adapted(lines_of(program_of(file, content)), _reversed(planned)))
    except DoesNotFit:
        return None
    was = put_back(file, content, made)
    return was if digest(program_of(file, was)) == planned.source.sha256 else None


def _reversed(planned: PlannedFile) -> list[Hunk]:
    """The edits that take a planned file's back. Lines of a notebook's cell do not move the lines of the next cell."""
    if not is_notebook(planned.source.file):
        return reverse(planned.edits)
    cells = groupby(planned.edits, key=lambda edit: cell_of(edit.index + 1)[0])
    return [edit for _, edits in cells for edit in reverse(list(edits))]


def _compiles(source: SourceFile, content: bytes) -> bool:
    if not source.path.endswith((".py", ".pyw", ENDING)):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
