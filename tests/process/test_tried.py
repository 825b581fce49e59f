"""A process takes samples of its dataset only for knobs that its windows may have."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.process.driver import PRELUDE, Guest, notes, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs import cached_samples
from bottleneck_doctor.runtime.wire.messages import Found, WindowDone
from bottleneck_doctor.session.session import Command

COUNTED = PRELUDE + (
    "class Counted(Rows):\n"
    "    def __getitem__(self, index):\n"
    "        note('taken', index)\n"
    "        return super().__getitem__(index)\n"
    "loader = DataLoader(Counted(), batch_size=4)\n"
    "for epoch in range(100000):\n"
    "    for batch in loader:\n"
    "        train_on(batch)\n"
)
ON: Setting = {cached_samples.NAME: True}


def taken(folder: Path, tried: Mapping[str, Any] | None, setting: Setting) -> tuple[int, Found, WindowDone]:
    """How many samples were taken until the loop was found, the loop, and a window under a setting."""
    folder.mkdir()
    guest = Guest(Command((sys.executable, str(write(folder, COUNTED))), folder), tried=tried)
    try:
        found = guest.found()
        count = len(notes(folder / "taken"))
        return count, found, guest.window(setting, lead_in=1, steps=4)
    finally:
        guest.close()


def test_samples_are_taken_for_what_may_be_tried_and_for_nothing_else(tmp_path: Path) -> None:
    any_knob, found, done = taken(tmp_path / "any", None, ON)
    assert cached_samples.NAME in found.facts
    assert done.effect == {cached_samples.NAME: True}
    none, found, done = taken(tmp_path / "none", {}, {})
    assert cached_samples.NAME not in found.facts
    assert done.status == "ok"
    one, found, done = taken(tmp_path / "one", {cached_samples.NAME: None}, ON)
    assert cached_samples.NAME in found.facts
    assert done.effect == {cached_samples.NAME: True}
    assert none < one <= any_knob
    assert none == 4 * found.position, "nothing but what the loop has asked for"


def test_none_are_taken_for_what_an_earlier_process_has_told(tmp_path: Path) -> None:
    _, found, _ = taken(tmp_path / "first", None, ON)
    told = found.facts[cached_samples.NAME]
    count, again, done = taken(tmp_path / "second", {cached_samples.NAME: told}, ON)
    assert again.facts[cached_samples.NAME] == told
    assert count == 4 * again.position
    assert done.effect == {cached_samples.NAME: True}


def test_what_an_earlier_process_was_refused_is_looked_at_anew(tmp_path: Path) -> None:
    told = {"obstacle": "preparing a sample in the main process failed (OSError)"}
    _, found, done = taken(tmp_path / "second", {cached_samples.NAME: told}, ON)
    assert found.facts[cached_samples.NAME]["obstacle"] == ""
    assert done.effect == {cached_samples.NAME: True}
