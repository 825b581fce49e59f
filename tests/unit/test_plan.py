"""Changes of a report put together, and files held against what the report kept of them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports import invented

from bottleneck_doctor.documents.report import Change, SourceFile, Sources
from bottleneck_doctor.edits.diff import as_change
from bottleneck_doctor.examine.sources import sources
from bottleneck_doctor.patches.kept import changed_lines, digest, is_as_kept, kept
from bottleneck_doctor.patches.plan import Plan, after, before, edits_of, plan
from bottleneck_doctor.system.project import located, path_in, project_of
from bottleneck_doctor.wording.patch_words import lines_text, name_of

TRAIN = """import torch

loader = DataLoader(rows, batch_size=8)
torch.set_num_threads(2)

for epoch in range(3):
    for batch in loader:
        loss = model(batch)
        loss.backward()
"""


def change(edited: str, source: str = TRAIN, file: str = "train.py") -> Change:
    made = as_change(source, edited, 1, "")
    return Change(file=file, line=made.line, diff=made.diff)


def known(*files: SourceFile) -> Sources:
    return Sources(project="/p", files=list(files))


def planned(*changes: Change, content: str = TRAIN) -> Plan:
    return plan(changes, known(kept("train.py", "train.py", content.encode())))


WORKERS = change(TRAIN.replace("batch_size=8", "batch_size=8, num_workers=4"))
PINNED = change(TRAIN.replace("batch_size=8", "batch_size=8, pin_memory=True"))
THREADS = change(TRAIN.replace("threads(2)", "threads(1)"))
FORMAT = change(
    TRAIN.replace("        loss = model", "        batch = batch.to(memory_format=f)\n        loss = model")
)
AUTOCAST = change(
    TRAIN.replace(
        "        loss = model(batch)\n", "        with torch.autocast('cpu'):\n            loss = model(batch)\n"
    )
)
INSIDE = change(TRAIN.replace("        loss.backward()", "        pass\n        loss.backward()"))


def result_of(found: Plan, content: bytes) -> bytes:
    assert len(found.files) == 1
    made = after(found.files[0], content)
    assert made is not None
    assert before(found.files[0], made) == content
    return made


def test_changes_of_one_file_are_made_together() -> None:
    found = planned(WORKERS, THREADS, FORMAT, AUTOCAST)
    assert found.left_out == []
    assert result_of(found, TRAIN.encode()).decode() == (
        """import torch

loader = DataLoader(rows, batch_size=8, num_workers=4)
torch.set_num_threads(1)

for epoch in range(3):
    for batch in loader:
        batch = batch.to(memory_format=f)
        with torch.autocast('cpu'):
            loss = model(batch)
        loss.backward()
"""
    )


def test_the_order_of_changes_does_not_matter() -> None:
    whole = result_of(planned(WORKERS, THREADS, FORMAT, AUTOCAST), TRAIN.encode())
    assert result_of(planned(AUTOCAST, FORMAT, THREADS, WORKERS), TRAIN.encode()) == whole


def test_two_edits_of_a_line_clash_and_the_same_one_does_not() -> None:
    found = planned(WORKERS, PINNED, THREADS)
    assert [(each.change, each.why) for each in found.left_out] == [(PINNED, "conflict")]
    assert b"num_workers=4" in result_of(found, TRAIN.encode())
    assert planned(WORKERS, WORKERS).left_out == []


def test_an_edit_between_the_lines_of_another_clashes() -> None:
    block = TRAIN.replace(
        "        loss = model(batch)\n        loss.backward()\n",
        "        with torch.autocast('cpu'):\n            loss = model(batch)\n            loss.backward()\n",
    )
    assert [each.why for each in planned(change(block), INSIDE).left_out] == ["conflict"]


def test_what_can_not_be_planned_is_left_out_with_its_reason() -> None:
    elsewhere = kept("/lib/x.py", "", b"")
    changes = [
        Change(file="train.py", line=3, diff="", note="Call it."),
        Change(file="/lib/x.py", line=1, diff="@@ -1 +1 @@\n-a\n+b\n"),
        Change(file="other.py", line=1, diff="@@ -1 +1 @@\n-a\n+b\n"),
        Change(file="train.py", line=1, diff="no diff at all"),
    ]
    found = plan(changes, known(elsewhere, kept("train.py", "train.py", TRAIN.encode())))
    assert [each.why for each in found.left_out] == ["no-diff", "outside", "unknown", "unknown"]
    assert found.files == []
    assert [each.why for each in plan([WORKERS], None).left_out] == ["unknown"]


def test_what_would_break_a_program_is_not_made() -> None:
    text = "if x:\n    one()\n    two()\n"
    first = change("if x:\n    two()\n", text)
    second = change("if x:\n    one()\n", text)
    found = planned(first, second, content=text)
    assert found.left_out == []
    assert after(found.files[0], text.encode()) is None
    assert result_of(planned(first, content=text), text.encode()) == b"if x:\n    two()\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_of_the_file_stay(end: str, mark: str, last: bool) -> None:
    """A diff has lost them: it was made of text as Python reads it."""
    text = mark + (TRAIN if last else TRAIN.removesuffix("\n"))
    edited = text.replace("        loss.backward()", "        loss = loss / 2\n        loss.backward()")
    more = f"{edited}done()\n" if last else f"{edited}\ndone()"
    for wanted in (edited, more, more.replace("loss / 2", "loss / 3")):
        content, made = (each.replace("\n", end).encode() for each in (text, wanted))
        found = plan([change(wanted, text)], known(kept("train.py", "train.py", content)))
        assert result_of(found, content) == made


TEXT = st.lists(st.sampled_from(["a = 1", "b = 2", "", "c = 3"]), max_size=12).map(
    lambda lines: "\n".join([*lines, ""])
)


@given(TEXT, TEXT)
def test_the_edits_of_a_diff_make_what_the_diff_says(source: str, edited: str) -> None:
    one = change(edited, source)
    if not one.diff or not source or not edited:
        return
    found = plan([one], known(kept("train.py", "train.py", source.encode())))
    assert result_of(found, source.encode()).decode() == edited


def test_edits_stand_at_their_lines() -> None:
    assert [(each.index, each.old, each.new) for each in edits_of(WORKERS.diff)] == [
        (2, ["loader = DataLoader(rows, batch_size=8)\n"], ["loader = DataLoader(rows, batch_size=8, num_workers=4)\n"])
    ]


# -- what is kept of a file --------------------------------------------------------------------------------------------


def test_what_has_changed_is_told_by_lines() -> None:
    source = kept("train.py", "train.py", TRAIN.encode())
    assert is_as_kept(source, TRAIN.encode())

    def told(text: str) -> str:
        assert not is_as_kept(source, text.encode())
        return lines_text(changed_lines(source, text.encode()))

    assert told(TRAIN.replace("threads(2)", "threads(3)")) == "line 4"
    assert told("# Mine.\n# Mine.\n" + TRAIN.replace("backward()", "backward(x)")) == "lines 1 to 2 and 11"
    assert told(TRAIN.replace("import torch\n", "")) == "what stood before line 1"
    assert told(TRAIN.replace("\n", "\r\n")) == "only line ends"
    assert told("\n\n".join(TRAIN.split("\n"))) == "7 places, the first in line 3"


def test_little_is_kept_of_a_line() -> None:
    """Nobody is to guess a password from its digest."""
    source = kept("x.py", "x.py", b"PASSWORD = 'hunter2'\n")
    assert len(source.line_digests) == 4
    assert source.sha256 == digest(b"PASSWORD = 'hunter2'\n")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_the_project_is_the_repository_or_the_folder_of_the_run(tmp_path: Path) -> None:
    inner = tmp_path / "code" / "inner"
    inner.mkdir(parents=True)
    train = inner / "train.py"
    train.write_text(TRAIN)
    assert project_of([train], tmp_path) == tmp_path
    assert project_of([train], tmp_path / "code") == tmp_path / "code"
    (tmp_path / "elsewhere").mkdir()
    assert project_of([train], tmp_path / "elsewhere") == inner
    git(tmp_path / "code", "init", "-q")
    for folder in (tmp_path, inner, tmp_path / "elsewhere"):
        assert project_of([train], folder) == tmp_path / "code"
    assert path_in(tmp_path / "code", train) == "inner/train.py"
    assert path_in(tmp_path / "code", tmp_path / "x.py") == ""
    link = tmp_path / "code" / "link.py"
    link.symlink_to(train)
    assert path_in(tmp_path / "code", link) == "inner/train.py"


def test_a_file_is_found_in_another_clone(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "train.py").write_text(TRAIN)
    gone = Path("/nowhere/at/all/train.py")
    assert located(gone, "inner/train.py", [tmp_path]) == tmp_path / "inner" / "train.py"
    assert located(gone, "", [tmp_path]) is None
    assert located(gone, "other.py", [tmp_path]) is None


def test_what_is_kept_is_read_from_the_disk(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text(TRAIN)
    fix = invented("pets").fixes[0]
    given = [Change(file=str(train), line=1, diff=each.diff) for each in (WORKERS, THREADS)]
    with_both = [replace(fix, change=given[0], more_changes=given[1:])]
    found = sources(with_both, None, tmp_path)
    assert found == Sources(project=str(tmp_path), files=[kept(str(train), "train.py", TRAIN.encode())])
    assert name_of(str(train), found, "/") == "train.py"
    # Written again before it could be kept: the changes are of another file.
    train.write_text("x = 1\n")
    again = sources(with_both, None, tmp_path)
    assert again is not None
    assert again.files == []
    assert sources([replace(fix, change=None)], None, tmp_path) is None
