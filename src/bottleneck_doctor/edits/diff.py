"""An edit of the user's own code, as people read it: their source and the edited one in, a `ChangeText` out. Pure."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ChangeText:
    """An edit. `line` is the first line of the user's file that changes, counted from 1; where all of the user's lines
    stay, the first in front of which there is a new one. `diff` is a unified diff with no file headers, "" where none
    fits; `edited` is the whole new source, "" with it. `unfinished`: the note says what
    is still to be done by hand."""

    line: int
    diff: str
    edited: str = ""
    note: str = ""
    unfinished: bool = False


def as_change(source: str, edited: str, line: int, note: str) -> ChangeText:
    """The change from `source` to `edited`, whose lines end alike. `line`: said where nothing differs."""
    old, new = source.removesuffix("\n").split("\n"), edited.removesuffix("\n").split("\n")
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [(kind, begin + 1) for kind, begin, *_ in opcodes if kind != "equal"]
    line = next((begin for kind, begin in changed if kind != "insert"), changed[0][1] if changed else line)
    hunks = difflib.unified_diff(
        [each.rstrip("\r") for each in old], [each.rstrip("\r") for each in new], n=1, lineterm=""
    )
    return ChangeText(line=line, diff="".join(f"{each}\n" for each in list(hunks)[2:]), edited=edited, note=note)
