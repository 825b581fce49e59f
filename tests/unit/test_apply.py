"""`doctor apply`: the user's files edited as the report says, or not at all; and put back."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.notebooks import notebook
from tests.reports import GOLDEN, invented

from bottleneck_doctor.cli import apply as apply_command
from bottleneck_doctor.cli import main
from bottleneck_doctor.cli._report import write_patches
from bottleneck_doctor.documents.redaction import Discretion, discretion
from bottleneck_doctor.documents.report import (
    Change,
    Combination,
    Confirmation,
    FixOutcome,
    Result,
    Speedup,
    Verdict,
    from_json,
    to_json,
)
from bottleneck_doctor.edits.diff import as_change
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.examine.sources import sources
from bottleneck_doctor.patches.kept import is_as_kept
from bottleneck_doctor.render.patches import patches
from bottleneck_doctor.runtime.wire.notebooks import program_of
from bottleneck_doctor.system import output
from bottleneck_doctor.system.editing import ChangedMeanwhile, FileEdit, edit_all

TRAIN = """import torch
from data import make

loader = make(batch_size=8)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


for epoch in range(3):
    for batch in loader:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
"""
DATA = """from torch.utils.data import DataLoader


def make(batch_size):
    return DataLoader(rows, batch_size=batch_size)
"""
CALL = "batch_size=batch_size)"
LOADED_CALL = "batch_size=batch_size, num_workers=4)"
LOADED = DATA.replace(CALL, LOADED_CALL)
KEPT = DATA.replace(CALL, "batch_size=batch_size, num_workers=4, persistent_workers=True)")
LOSS = "        loss = model(batch).sum()\n"
CAST_LOSS = '        with torch.autocast("cpu", dtype=torch.bfloat16):\n            loss = model(batch).sum()\n'
CAST = TRAIN.replace(LOSS, CAST_LOSS)
THREADS = TRAIN.replace("\n\nfor epoch", "\n\ntorch.set_num_threads(1)\nfor epoch")
BOTH = CAST.replace("\n\nfor epoch", "\n\ntorch.set_num_threads(1)\nfor epoch")


@dataclass
class Project:
    """A folder with a training, and the report of it."""

    folder: Path
    result: Result

    @property
    def train(self) -> Path:
        return self.folder / "train.py"

    @property
    def data(self) -> Path:
        return self.folder / "data.py"

    def texts(self) -> tuple[str, str]:
        return self.train.read_bytes().decode(), self.data.read_bytes().decode()

    def write(self, result: Result) -> None:
        self.result = result
        (self.folder / "report.json").write_bytes(to_json(result))


def change(file: Path, edited: str, note: str = "") -> Change:
    source = file.read_text(encoding="utf-8")
    made = as_change(source, edited, 1, note)
    return Change(file=str(file), line=made.line, diff=made.diff, note=note)


def reported(folder: Path) -> Result:
    """A report that promises workers and autocast together, of the files as they are."""
    whole = invented("pets")
    fix = whole.fixes[0]
    train, data = folder / "train.py", folder / "data.py"
    workers, cast = change(data, LOADED), change(train, CAST)

    def outcome(identifier: str, setting: dict[str, int | str | bool], *changes: Change) -> FixOutcome:
        rest = list(changes[1:])
        return replace(
            fix,
            id=identifier,
            title=identifier,
            setting=dict(setting),
            change=next(iter(changes), None),
            more_changes=rest,
        )

    note = "Start it with `MALLOC_ARENA_MAX=1` before the command."
    fixes = [
        outcome("workers", {"num_workers": 4}, workers),
        outcome("persistent-workers", {"num_workers": 4, "persistent_workers": True}, change(data, KEPT)),
        outcome("amp-bf16", {"num_workers": 4, "autocast": "bfloat16"}, workers, cast),
        outcome("intra-op-threads", {"intra_op_threads": 1}, change(train, THREADS, "And say so.")),
        outcome("allocator", {"allocator": "x"}, Change(file=str(train), line=0, diff="", note=note)),
        replace(outcome("pinned-memory", {}), status="not_applicable", speedup=None),
    ]
    assert fix.speedup is not None
    together = Combination(
        setting={"num_workers": 4, "autocast": "bfloat16"}, speedup=fix.speedup, confirmed=None, ladder=[],
        changes=[workers, cast],
    )  # fmt: skip
    return replace(
        whole,
        entrypoint=replace(whole.entrypoint, argv=["train.py"], cwd=str(folder)),
        verdict=Verdict(sentence="Both make it faster.", fix="workers", together=True),
        fixes=fixes,
        combination=together,
        method=replace(whole.method, command=["doctor", "run", "train.py"]),
        sources=sources(fixes, together, folder),
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_bytes(TRAIN.encode())
    (folder / "data.py").write_bytes(DATA.encode())
    monkeypatch.chdir(folder)
    made = Project(folder, reported(folder))
    made.write(made.result)
    return made


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = Exit.USAGE) -> str:
    """What stderr says."""
    assert main(["apply", *arguments]) == code
    return capsys.readouterr().err


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- what it does ------------------------------------------------------------------------------------------------------


def test_what_the_report_promises_is_made_and_taken_back(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(project.folder)
    assert main(["apply"]) == Exit.DONE
    assert project.texts() == (CAST, LOADED)
    said = capsys.readouterr()
    assert "\n+    return DataLoader(rows, batch_size=batch_size, num_workers=4)\n" in said.out
    assert "\n--- a/train.py\n+++ b/train.py\n" in said.out
    assert "Changed data.py and train.py.\n" in said.out
    assert "Take it back:  doctor apply --undo\nMeasure again: doctor run train.py\n" in said.out
    assert said.err == ""
    # Again: nothing is left to do.
    assert main(["apply"]) == Exit.DONE
    assert capsys.readouterr().out == "data.py and train.py have this change already.\n"
    assert main(["apply", "--undo"]) == Exit.DONE
    said = capsys.readouterr()
    assert "Put data.py and train.py back." in said.out
    assert "-    return DataLoader(rows, batch_size=batch_size, num_workers=4)\n" in said.out
    after = files_of(project.folder)
    assert {name for name in after if name not in before} == {"report-artifacts/.bottleneck-doctor"}
    assert {name: after[name] for name in before} == before


def test_a_change_is_made_in_the_cells_of_a_notebook(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    path = project.folder / "train.ipynb"
    path.write_bytes(notebook("%matplotlib inline\n" + DATA, "loader = make(8)"))
    text = program_of(str(path), path.read_bytes()).decode()
    made = as_change(text, text.replace(CALL, LOADED_CALL), 1, "")
    fix = replace(project.result.fixes[0], change=Change(file=str(path), line=made.line, diff=made.diff))
    kept = sources([fix], None, project.folder)
    project.write(replace(project.result, fixes=[fix], combination=None, sources=kept))
    before = path.read_bytes()
    assert main(["apply", "--fix", "workers"]) == Exit.DONE
    assert path.read_bytes() == notebook("%matplotlib inline\n" + LOADED, "loader = make(8)")
    said = capsys.readouterr().out
    assert "Changed train.ipynb. If train.ipynb is open, reload it from disk: saving it would undo that.\n" in said
    assert main(["apply", "--fix", "workers"]) == Exit.DONE
    assert capsys.readouterr().out == "train.ipynb has this change already.\n"
    assert main(["apply", "--undo"]) == Exit.DONE
    assert path.read_bytes() == before
    path.write_bytes(notebook("%matplotlib inline\n" + DATA.replace("rows", "lines"), "loader = make(8)"))
    assert "train.ipynb differs (cell 1)" in refused(capsys, "--fix", "workers")


def test_what_is_shown_is_a_patch_that_git_applies(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--check"]) == Exit.WOULD_CHANGE
    shown = capsys.readouterr().out
    assert "This would change data.py and train.py." in shown
    assert project.texts() == (TRAIN, DATA)
    patch = shown[: shown.index("\n\n") + 1]
    subprocess.run(["git", "apply"], cwd=project.folder, input=patch.encode(), check=True)
    assert project.texts() == (CAST, LOADED)


def test_check_ends_with_0_where_nothing_is_left_to_do(project: Project) -> None:
    assert main(["apply", "--check"]) == 1
    assert main(["apply", "--check", "--fix", "workers"]) == 1
    assert not (project.folder / "report-artifacts").exists()
    assert main(["apply"]) == Exit.DONE
    assert main(["apply", "--check"]) == Exit.DONE
    assert main(["apply", "--check", "--fix", "workers"]) == Exit.DONE
    # One of the two is missing again.
    project.data.write_text(DATA)
    assert main(["apply", "--check"]) == 1
    assert main(["apply"]) == Exit.DONE
    assert project.texts() == (CAST, LOADED)


def test_single_fixes_and_several(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    def applied(*fixes: str) -> tuple[str, str]:
        assert main(["apply", *(word for fix in fixes for word in ("--fix", fix))]) == Exit.DONE
        texts = project.texts()
        assert main(["apply", "--undo"]) == Exit.DONE
        assert project.texts() == (TRAIN, DATA)
        return texts

    assert applied("workers") == (TRAIN, LOADED)
    # In two places, both of which it needs.
    assert applied("amp-bf16") == (CAST, LOADED)
    assert applied("intra-op-threads") == (THREADS, DATA)
    assert "Note: And say so. (train.py, line 9)" in capsys.readouterr().out
    assert applied("amp-bf16", "intra-op-threads") == (BOTH, LOADED)
    # What another builds on is in that one's change.
    assert applied("workers", "persistent-workers", "intra-op-threads") == (THREADS, KEPT)
    error = refused(capsys, "--fix", "amp-bf16", "--fix", "persistent-workers")
    assert "amp-bf16 and persistent-workers can't be made together" in error
    assert "data.py, line 5. [fixes-conflict]" in error


def test_changes_are_taken_back_one_by_one(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--fix", "workers"]) == Exit.DONE
    assert main(["apply", "--fix", "intra-op-threads"]) == Exit.DONE
    assert project.texts() == (THREADS, LOADED)
    assert main(["apply", "--undo"]) == Exit.DONE
    assert project.texts() == (TRAIN, LOADED)
    assert main(["apply", "--undo"]) == Exit.DONE
    assert project.texts() == (TRAIN, DATA)
    assert "[nothing-to-undo]" in refused(capsys, "--undo")


def test_no_git_is_needed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["apply"]) == Exit.DONE
    assert main(["apply", "--undo"]) == Exit.DONE
    assert project.texts() == (TRAIN, DATA)


def test_the_command_itself_from_another_folder(project: Project, tmp_path: Path) -> None:
    def doctor(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bottleneck_doctor", "apply", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = doctor("project", "--fix", "workers")
    assert done.returncode == Exit.DONE, done.stderr
    assert "Take it back:  doctor apply project --undo" in done.stdout
    assert "\x1b" not in done.stdout
    assert project.texts() == (TRAIN, LOADED)
    assert doctor("project/report.json", "--check").returncode == Exit.WOULD_CHANGE
    assert doctor("project", "--undo").returncode == Exit.DONE
    assert project.texts() == (TRAIN, DATA)
    missing = doctor()
    assert missing.returncode == Exit.USAGE
    assert "[report-missing]" in missing.stderr


def test_a_diff_is_coloured_on_a_terminal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bottleneck_doctor.cli._terminal.stdout_has_color", lambda: True)
    shown = CliRunner().invoke(apply_command.command, ["--check"], color=True, standalone_mode=False).output
    assert "\x1b[32m+    return DataLoader(rows, batch_size=batch_size, num_workers=4)\x1b[0m\n" in shown
    assert "\x1b[31m-    return DataLoader" in shown


def test_another_clone_is_edited_where_the_first_one_is_gone(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    project.folder.rename(elsewhere)
    os.chdir(elsewhere)
    assert main(["apply"]) == Exit.DONE
    assert (elsewhere / "train.py").read_text() == CAST
    assert main(["apply", "--undo"]) == Exit.DONE
    assert (elsewhere / "train.py").read_text() == TRAIN


# -- how files are written ---------------------------------------------------------------------------------------------


def test_permissions_and_links_stay(project: Project, tmp_path: Path) -> None:
    project.train.chmod(0o751)
    real = tmp_path / "real.py"
    project.data.rename(real)
    real.chmod(0o640)
    project.data.symlink_to(real)
    assert main(["apply"]) == Exit.DONE
    assert stat.S_IMODE(project.train.stat().st_mode) == 0o751
    assert project.data.is_symlink()
    assert real.read_text() == LOADED
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert main(["apply", "--undo"]) == Exit.DONE
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == (DATA, 0o640)


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.removesuffix("\n").encode(),
        lambda text: text.replace("import torch", "import torch  # gr\u00f6\u00dfe \u65e5\u672c").encode(),
    ],
    ids=["crlf", "bom", "no end", "words"],
)
def test_bytes_that_are_not_changed_stay(form: Callable[[str], bytes], project: Project) -> None:
    project.train.write_bytes(form(TRAIN))
    project.data.write_bytes(form(DATA))
    whole = reported(project.folder)
    # As the examination reads sources: line ends are lost, all else is there.
    cast = change(project.train, project.train.read_text(encoding="utf-8").replace(LOSS, CAST_LOSS))
    loaded = change(project.data, project.data.read_text(encoding="utf-8").replace(CALL, LOADED_CALL))
    fixes = [replace(whole.fixes[0], change=loaded, more_changes=[cast])]
    verdict = Verdict(sentence="x", fix="workers")
    kept = sources(fixes, None, project.folder)
    project.write(replace(whole, fixes=fixes, combination=None, sources=kept, verdict=verdict))
    before = project.train.read_bytes(), project.data.read_bytes()
    assert main(["apply"]) == Exit.DONE
    assert project.train.read_bytes() == form(CAST)
    assert project.data.read_bytes() == form(LOADED)
    assert main(["apply", "--undo"]) == Exit.DONE
    assert (project.train.read_bytes(), project.data.read_bytes()) == before


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_in_the_second_file_puts_the_first_back(
    failure: BaseException, project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced = []
    original = os.replace

    def failing(source: str, target: str) -> None:
        if Path(target).suffix == ".py":
            replaced.append(Path(target).name)
            if len(replaced) == 2:
                raise failure
        original(source, target)

    before = files_of(project.folder)
    monkeypatch.setattr(os, "replace", failing)
    if isinstance(failure, OSError):
        error = refused(capsys)
        assert "can't be edited: No space left on device. No file was changed. [file-unwritable]" in error
    else:
        refused(capsys, code=Exit.INTERRUPTED)
    assert replaced[:2] == ["data.py", "train.py"]
    after = files_of(project.folder)
    assert {name: after[name] for name in before} == before
    assert "report-artifacts/undo.json" not in after
    assert not [name for name in after if ".doctor-" in name]


def test_a_file_that_somebody_else_writes_meanwhile_is_theirs(project: Project) -> None:
    edits = [FileEdit(project.data, DATA.encode(), b"x"), FileEdit(project.train, b"something else", b"y")]
    with pytest.raises(ChangedMeanwhile) as error:
        edit_all(edits)
    assert error.value.path == project.train
    assert project.texts() == (TRAIN, DATA)
    assert {path.name for path in project.folder.iterdir()} == {"train.py", "data.py", "report.json"}


@pytest.mark.parametrize("undo", [False, True])
def test_a_write_protected_file_is_left_alone(undo: bool, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    if undo:
        assert main(["apply"]) == Exit.DONE
    before = files_of(project.folder)
    project.train.chmod(0o444)
    error = refused(capsys, *(["--undo"] if undo else []))
    assert "train.py can't be edited: it is write-protected. No file was changed. [file-unwritable]" in error
    assert files_of(project.folder) == before


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_files_that_changed_are_left_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.train.write_text(TRAIN.replace("lr=0.1", "lr=0.2"))
    before = files_of(project.folder)
    for arguments in ([], ["--check"], ["--fix", "amp-bf16"]):
        error = refused(capsys, *arguments)
        assert "files that the change is for have changed: train.py differs (line 6). [files-changed]" in error
        assert "→ Examine again: doctor run train.py" in error
    assert files_of(project.folder) == before
    # Of a fix in the other file nothing is in the way.
    assert main(["apply", "--fix", "workers"]) == Exit.DONE
    project.train.unlink()
    assert "train.py is gone" in refused(capsys)


def test_what_doctor_changed_itself_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--fix", "intra-op-threads"]) == Exit.DONE
    error = refused(capsys, "--fix", "amp-bf16")
    assert "train.py differs (line 9); `doctor apply` did that." in error
    assert (
        "doctor apply --undo, then make both changes at once: doctor apply --fix intra-op-threads --fix amp-bf16"
        in error
    )
    assert main(["apply", "--undo"]) == Exit.DONE
    assert main(["apply", "--fix", "intra-op-threads", "--fix", "amp-bf16"]) == Exit.DONE
    assert project.texts() == (BOTH, LOADED)


def test_what_changed_since_is_not_put_back(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply"]) == Exit.DONE
    project.train.write_text(CAST + "done()\n")
    before = files_of(project.folder)
    error = refused(capsys, "--undo")
    assert "train.py has changed since `doctor apply` edited it, so no file was put back. [files-changed]" in error
    assert '-        with torch.autocast("cpu", dtype=torch.bfloat16):\n' in error
    assert files_of(project.folder) == before
    project.train.write_text(CAST)
    # Put back by hand: only the other one is left to do.
    project.data.write_text(DATA)
    assert main(["apply", "--undo"]) == Exit.DONE
    assert project.texts() == (TRAIN, DATA)


def test_ids_that_are_unknown_and_fixes_without_a_diff(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "--fix", "worker")
    assert "The report has no fix 'worker'. [unknown-fix]\n  → Did you mean workers?" in error
    error = refused(capsys, "--fix", "allocator")
    assert "allocator can't be made by editing a file. [no-change]" in error
    assert "→ Start it with `MALLOC_ARENA_MAX=1` before the command." in error
    error = refused(capsys, "--fix", "pinned-memory")
    assert "The report holds no change for pinned-memory (not applicable). [no-change]" in error
    assert "It holds changes for workers, persistent-workers, amp-bf16 and intra-op-threads" in error
    assert "[usage]" in refused(capsys, "--undo", "--check")
    assert project.texts() == (TRAIN, DATA)


def test_reports_that_promise_nothing_or_hold_too_little(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    whole = project.result
    open_ = [replace(fix, status="cannot_tell") for fix in whole.fixes]
    project.write(replace(whole, fixes=open_, verdict=Verdict(sentence="Nothing is faster."), combination=None))
    error = refused(capsys)
    assert "Nothing in this report is known to be faster. [nothing-faster]" in error
    assert "name one with --fix" in error
    assert main(["apply", "--fix", "workers", "--check"]) == Exit.WOULD_CHANGE

    project.write(replace(whole, sources=None, tool=replace(whole.tool, version="0.3.0")))
    error = refused(capsys)
    assert "Release 0.3.0 wrote this report, which kept nothing to hold your files against. [report-too-old]" in error
    assert "→ Examine again: doctor run train.py" in error

    bare = replace(whole, method=replace(whole.method, source=False), sources=None)
    project.write(Discretion(source=False).document(bare))
    assert "made with --no-source, so it holds no diffs. [no-change]" in refused(capsys)

    (project.folder / "report.json").write_bytes((GOLDEN / "report-format-1.json").read_bytes())
    assert "[report-too-old]" in refused(capsys)
    (project.folder / "report.json").write_text("{}")
    assert "[report-unreadable]" in refused(capsys)
    assert project.texts() == (TRAIN, DATA)


def test_what_is_kept_for_undoing_may_be_damaged(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply"]) == Exit.DONE
    kept = project.folder / "report-artifacts" / "undo.json"
    whole = kept.read_text()
    for damaged in ("{", whole.replace('"format": 1', '"format": 2'), whole.replace("autocast", "autocost")):
        kept.write_text(damaged)
        before = files_of(project.folder)
        assert refused(capsys, "--undo").count("doctor: ") == 1
        assert files_of(project.folder) == before


def test_a_folder_that_is_not_ours_is_left_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.folder / "report-artifacts").mkdir()
    before = files_of(project.folder)
    assert "[output-not-ours]" in refused(capsys)
    assert files_of(project.folder) == before


# -- beside the report -------------------------------------------------------------------------------------------------


def written(project: Project, shows: Discretion) -> tuple[dict[str, str], list[str]]:
    """The patches that lie beside a report, after a run writes it."""
    with tempfile.TemporaryDirectory() as made:
        problems = write_patches(project.result, Path(made), shows)
        output.write(project.folder, project.result, "<title>x – bottleneck-doctor</title>", Path(made))
    folder = project.folder / "report-artifacts"
    return {name: text.decode() for name, text in files_of(folder).items() if name.endswith(".patch")}, problems


def test_a_patch_says_what_the_changed_program_brought(project: Project) -> None:
    measured = Speedup(estimate=1.4, low=1.3, high=1.5, pairs=40, sessions=5)
    confirmation = Confirmation(outcome="agrees", sentence="Said.", promised=measured, speedup=measured)
    whole = replace(project.result, confirmation=confirmation)
    texts = [text.encode() for text in (TRAIN, DATA)]
    made = patches(whole, lambda file: next(each for each in texts if is_as_kept(file, each)), lambda text: True)
    title = made.files["fix.patch"].decode().splitlines()[0]
    assert title.endswith(": 1.40× as fast (1.30–1.50, 5 pairs of processes)")


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "-s"]], ids=" ".join)
def test_patches_lie_beside_the_report(tool: Sequence[str], project: Project) -> None:
    found, problems = written(project, Discretion())
    assert problems == []
    names = ["workers", "persistent-workers", "amp-bf16", "intra-op-threads"]
    assert set(found) == {"fix.patch", *(f"fixes/{name}.patch" for name in names)}
    assert found["fix.patch"].startswith("bottleneck-doctor: num_workers=4")
    assert "Note: And say so. (train.py, line 9)" in found["fixes/intra-op-threads.patch"]
    for name, texts in {"fix.patch": (CAST, LOADED), "fixes/intra-op-threads.patch": (THREADS, DATA)}.items():
        given = found[name].encode()
        subprocess.run(tool, cwd=project.folder, input=given, check=True, capture_output=True)
        assert project.texts() == texts
        subprocess.run([*tool, "-R"], cwd=project.folder, input=given, check=True, capture_output=True)
        assert project.texts() == (TRAIN, DATA)


def test_the_next_run_replaces_patches_and_leaves_what_undoes(project: Project) -> None:
    written(project, Discretion())
    assert main(["apply"]) == Exit.DONE
    nothing = Verdict(sentence="Nothing is faster.")
    project.write(replace(project.result, fixes=[], combination=None, verdict=nothing, sources=None))
    found, problems = written(project, Discretion())
    assert (found, problems) == ({}, [])
    assert main(["apply", "--undo"]) == Exit.DONE
    assert project.texts() == (TRAIN, DATA)
    found, _ = written(project, Discretion())
    assert not (project.folder / "report-artifacts").exists()


def test_no_patch_is_written_of_a_file_that_changed_meanwhile(project: Project) -> None:
    project.data.write_text(DATA + "x = 1\n")
    found, problems = written(project, Discretion())
    assert set(found) == {"fixes/intra-op-threads.patch"}
    assert problems[0] == "fix.patch was not written: data.py changed meanwhile."


def test_a_secret_beside_a_change_is_in_no_patch(project: Project) -> None:
    project.train.write_text(TRAIN.replace("optimizer = ", 'token = "correct horse battery"\noptimizer = '))
    known = discretion([], {"HF_TOKEN": "correct horse battery"})
    text = project.train.read_text()
    near = change(project.train, text.replace("\n\n\nfor epoch", "\n\n\ntorch.set_num_threads(1)\nfor epoch"))
    beside = change(project.train, text.replace("optimizer = ", "torch.x()\noptimizer = "))
    fixes = [
        replace(project.result.fixes[0], id="near", change=near),
        replace(project.result.fixes[0], id="beside", change=beside),
    ]
    result = replace(project.result, fixes=fixes, combination=None, verdict=Verdict(sentence="x", fix="near"))
    result = replace(result, sources=sources(fixes, None, project.folder))
    project.write(known.document(result))
    found, problems = written(project, known)
    assert set(found) == {"fix.patch", "fixes/near.patch"}
    assert all("correct horse" not in text for text in found.values())
    subprocess.run(["git", "apply"], cwd=project.folder, input=found["fix.patch"].encode(), check=True)
    assert "torch.set_num_threads(1)" in project.train.read_text()
    assert problems == []


def test_a_report_read_again_says_the_same(project: Project) -> None:
    again = from_json((project.folder / "report.json").read_bytes(), source="report.json")
    assert again == project.result
