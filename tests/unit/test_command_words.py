"""Which words of a command line change, and with which command the changed program is measured again."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from tests.reports import invented

from bottleneck_doctor.documents.report import Change, ChangedWords
from bottleneck_doctor.wording.command_words import measured_again, with_words


def changed(before: str, after: str) -> ChangedWords:
    return ChangedWords(before=before, after=after)


@pytest.mark.parametrize(
    ("words", "changes", "made"),
    [
        ("-j 1 -j 2", [("-j 2", "-j 4")], "-j 1 -j 4"),
        ("--out 'my runs' -j2", [("-j2", "-j4"), ("", "--pin True")], "--out 'my runs' -j4 --pin True"),
        ("--gradient_checkpointing x", [("--gradient_checkpointing", "")], "x"),
        ("--workers=1", [("--workers=1", "--workers=2")], "--workers=2"),
        ("--only", [("--only", "")], ""),
        ("-j 1", [("-j 2", "-j 4")], None),
    ],
)
def test_words_take_the_place_of_others(words: str, changes: list[tuple[str, str]], made: str | None) -> None:
    found = with_words(shlex.split(words), [changed(*each) for each in changes])
    assert found == (None if made is None else tuple(shlex.split(made)))


@pytest.mark.parametrize(
    ("command", "changes", "again"),
    [
        ("doctor run t.py -- -j 1", [("-j 1", "-j 4")], "doctor run t.py -- -j 4"),
        ("doctor run t.py -- -j 1", [("", "--pin")], "doctor run t.py -- -j 1 --pin"),
        ("doctor run t.py", [("", "--pin")], "doctor run t.py -- --pin"),
        ("doctor run t.py", [("-j 1", "-j 4")], "doctor run t.py"),
        ("doctor run t.py -- -j 1", [], "doctor run t.py -- -j 1"),
    ],
)
def test_the_changed_program_is_measured_again(command: str, changes: list[tuple[str, str]], again: str) -> None:
    result = invented("pets")
    result = replace(result, method=replace(result.method, command=command.split()))
    change = Change(file="t.py", line=1, diff="", note="Give other words.", words=[changed(*each) for each in changes])
    assert measured_again(result, [change]) == again
