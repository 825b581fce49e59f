"""What is said of patches: how they are made, what they leave to the user, and in what a file differs from the one that
they are for. Values in, words out."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.documents.report import Change, Result, Sources
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.plan import LeftOut, Plan, edits_of
from bottleneck_doctor.runtime.wire.notebooks import cell_of, is_notebook
from bottleneck_doctor.wording import words

MOST_PLACES = 4
"""Places of a file that are named one by one."""


def name_of(file: str, sources: Sources | None, folder: str) -> str:
    """What a file is called in patches: from the project's root, else from `folder`, else by its whole path."""
    path = next((each.path for each in sources.files if each.file == file), "") if sources is not None else ""
    home = folder.rstrip("/") + "/"
    return path or (file.removeprefix(home) if len(home) > 1 else file)


def place_of(change: Change, result: Result) -> str:
    """`train.py, line 41`"""
    return words.place_text(name_of(change.file, result.sources, result.entrypoint.cwd), change.line)


def lines_of(change: Change) -> list[int]:
    """The lines of the file as it is that a change touches, in order; its own line alone where those are many, or lie
    in the cells of a notebook."""
    if not change.diff or is_notebook(change.file):
        return [change.line]
    try:
        lines = sorted({edit.index + 1 for edit in edits_of(change.diff)} or {change.line})
    except DoctorError:
        return [change.line]
    return lines if len(lines) <= MOST_PLACES else [change.line]


def left_out(plan: Plan, result: Result) -> list[str]:
    """Which diffs are left to the user, a sentence each."""
    return [
        f"Make the change in {place_of(out.change, result)} by hand: {_why(out, result)}."
        for out in plan.left_out
        if out.why != "no-diff"
    ]


def notes(changes: Sequence[Change], result: Result) -> list[str]:
    """What there is to do beside diffs, or instead of them, a sentence each."""
    told = [(change.note, place_of(change, result) if change.line > 0 else "") for change in changes if change.note]
    return [f"{note} ({place})" if place else note for note, place in dict.fromkeys(told)]


def _why(out: LeftOut, result: Result) -> str:
    if out.why == "conflict":
        return "another one changes the same lines"
    if out.why == "outside" and result.sources is not None:
        return f"the file lies outside of {result.sources.project}"
    if result.sources is None:
        return "an older release wrote this report, and kept nothing to hold the file against"
    return "the file was not as the change expects it when the report was written"


def lines_text(places: Sequence[tuple[int, int]], file: str = "") -> str:
    """Which lines of a file differ, as `changed_lines` has them: `line 4`, `lines 4 to 6 and 12`, `cells 2 and 5`."""
    if not places:
        return "only line ends"
    if is_notebook(file):
        cells = [str(cell) for cell in dict.fromkeys(cell_of(begin)[0] for begin, _ in places)]
        return f"{words.plural('cell', len(cells))} {words.listed(cells)}"
    if len(places) > MOST_PLACES:
        return f"{len(places)} places, the first in line {places[0][0]}"
    gone = [begin for begin, end in places if end < begin]
    there = [f"{begin}" if begin == end else f"{begin} to {end}" for begin, end in places if end >= begin]
    parts = []
    if there:
        single = len(there) == 1 and " " not in there[0]
        parts.append(f"{'line' if single else 'lines'} {words.listed(there)}")
    if gone:
        parts.append(
            f"what stood before {'line' if len(gone) == 1 else 'lines'} {words.listed([str(at) for at in gone])}"
        )
    return words.listed(parts)


def apply_command(folder: str, fixes: Sequence[str] = ()) -> list[str]:
    """`doctor apply` for the report in `folder`; without `fixes` what the report promises."""
    named = [word for fix in fixes for word in ("--fix", fix)]
    return ["doctor", "apply", *named, *([folder] if folder not in ("", ".") else [])]
