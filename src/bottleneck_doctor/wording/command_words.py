"""Command lines whose words change: a program's own, and the one that measures it again. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bottleneck_doctor.documents.report import Change, ChangedWords, Result
from bottleneck_doctor.wording import words


def with_words(arguments: Sequence[str], changed: Sequence[ChangedWords]) -> tuple[str, ...] | None:
    """The arguments with words changed; None where those that are to be replaced don't stand there."""
    made = list(arguments)
    for each in changed:
        before, after = shlex.split(each.before), shlex.split(each.after)
        place = len(made)
        if before:
            places = range(len(made) - len(before), -1, -1)
            found = next((at for at in places if made[at : at + len(before)] == before), None)
            if found is None:
                return None
            place = found
        made[place : place + len(before)] = after
    return tuple(made)


def measured_again(result: Result, changes: Sequence[Change] = ()) -> str:
    """The command that measures again once the changes are made, which may change its words, too."""
    command = result.method.command
    changed = [each for change in changes for each in change.words]
    added = any(not each.before for each in changed)
    before = [*command, "--"] if added and "--" not in command else command
    made = with_words(before, changed) if changed else None
    return words.command_text(words.visible(word) for word in (made or command))
