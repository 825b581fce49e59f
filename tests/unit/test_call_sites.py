"""Programs that make a loader in all the ways in which people do: each is run, edited where its loader was made, and
run again, and what counts is what the loader gets."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.call_site_libraries import LIBRARIES
from tests.unit.call_sites import SITES, Site
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.runtime.loader import takers  # noqa: F401 - The stand-in for torch asks it, and it imports torch.
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire.messages import Found


@dataclass(frozen=True)
class Made:
    """A loader of the program: what it got, and the user's line that made it."""

    given: Mapping[str, Any]
    file: str
    line: int
    takers: list[messages.Taker] | None


def files_of(program: str) -> dict[str, str]:
    parts = [part.partition("\n") for part in program.split("=== ")[1:]]
    return {name: text for name, _, text in parts}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@contextmanager
def alone(folder: Path, words: list[str]) -> Iterator[None]:
    """As if a process of its own ran here: nothing that the program imports is there before, or stays."""
    modules, path, argv, here = dict(sys.modules), list(sys.path), sys.argv, os.getcwd()
    ours = {name.partition("/")[0].removesuffix(".py") for name in LIBRARIES}
    for name in list(sys.modules):
        if name.partition(".")[0] in ours:
            del sys.modules[name]
    sys.path[:0] = [str(folder), str(folder / "site-packages")]
    sys.argv = words
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Programs of users leave their files open.
            yield
    finally:
        os.chdir(here)
        sys.argv = argv
        sys.path[:] = path
        sys.modules.clear()
        sys.modules.update(modules)


def run(folder: Path, words: str) -> list[Made]:
    """Every loader that the program makes."""
    for cache in folder.rglob("__pycache__"):
        for file in cache.iterdir():
            file.unlink()  # Two texts of one length, written within a second, look the same to it.
    with alone(folder, shlex.split(words)):
        with suppress(SystemExit):
            runpy.run_path(str(folder / "train.py"), run_name="__main__")
        return [Made(*each) for each in sys.modules["torch.utils.data"].MADE]


def got(made: list[Made], rows: str) -> Made:
    """The loader of these rows that was made last: that is the one which is used."""
    return [each for each in made if each.given["dataset"] == rows][-1]


def has(made: Made, wanted: Mapping[str, Any]) -> bool:
    given = made.given
    return all(
        name in given and type(given[name]) is type(value) and given[name] == value for name, value in wanted.items()
    )


def found_at(made: Made, device: str) -> Found:
    site = messages.Site(file=made.file, line=made.line)
    own = {name: made.given[name] for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")}
    nowhere: dict[str, Any] = {"forward_site": None, "backward_site": None}
    return replace(FOUND, device=device, loader_site=site, loader_takers=made.takers, **nowhere, **own)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "site-packages", LIBRARIES)
    return tmp_path


def test_there_are_enough_kinds() -> None:
    names = [site.name for site in SITES]
    assert len(set(names)) == len(names)
    assert len(names) >= 60


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_the_loader_gets_what_it_is_to_get(site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(site.program)
    write(folder, files)
    monkeypatch.chdir(folder)
    words = site.words or "train.py"
    made = run(folder, words)
    before = got(made, "train")
    assert not has(before, site.setting)
    setting: Setting = {name: value for name, value in site.setting.items() if isinstance(value, (bool, int, str))}
    changes = changes_for(setting, found_at(before, site.device), shlex.split(words))
    edited = edited_files(setting, found_at(before, site.device), shlex.split(words))
    names = {str(folder / name): name for name in files}
    assert {names[file] for file in edited} == set(site.edited)
    assert {names[change.file] for change in changes if change.diff} == set(site.edited)
    assert all(files[names[file]] == text for file, (text, _) in edited.items())
    notes = " ".join(change.note for change in changes)
    assert site.said in notes
    for change in changes:
        note = re.sub("from (the entry )?`[^`]*`", "", Discretion(source=False).document(change).note)
        quoted = re.findall("`([^`]*)`", note)
        assert not [each for each in quoted if re.fullmatch(r"[*\w.\[\]'()]+", each)], "that is the user's code"
    not_followed = "If it is an option of your program" in notes or "what is written behind it wins" in notes
    assert not_followed == site.overridden
    if not site.edited and site.started is None:
        assert notes
        return
    for file, (_, text) in edited.items():
        Path(file).write_bytes(text.encode())
    made = run(folder, site.started or words)
    assert has(got(made, "train"), site.setting), notes
    if site.val:
        assert has(got(made, "val"), site.val)
    for change in changes:
        assert (
            patched(files[names[change.file]], change.diff)
            == edited.get(change.file, (None, files[names[change.file]]))[1]
        )


def patched(text: str, diff: str) -> str:
    """The text after a diff; both with "\\n" at their ends of lines."""
    lines, made, at = text.split("\n"), [], 0
    for line in diff.split("\n")[:-1]:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (0 if count == "0" else 1)
            made += lines[at:begin]
            at = begin
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert lines[at] == line[1:]
            made += [] if line.startswith("-") else [line[1:]]
            at += 1
    return "\n".join([*made, *lines[at:]])
