"""What is tried, before anything starts: which project, which files, and what of it is refused. Nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.unit.test_gate_revision import git

from bottleneck_doctor.documents.redaction import Discretion, discretion
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.gate.cause.hunks import Hunk
from bottleneck_doctor.gate.sides import edit
from bottleneck_doctor.gate.sides.edit import Edit, check_parses, planned, project_of
from bottleneck_doctor.session.start import Start

START = Start(script=Path("train.py"), arguments=("--workers", "2"))
HELPER = b"one\ntwo\nthree\n"
PATCH = b"--- a/src/helper.py\n+++ b/src/helper.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
BESIDE = PATCH.replace(b"src/", b"")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "train.py").write_text("import torch\n")
    (root / "src" / "helper.py").write_bytes(HELPER)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(root)
    return root


def refused(slug: str, *patches: bytes, cwd: Path | None = None) -> DoctorError:
    with pytest.raises(DoctorError) as error:
        planned(START, cwd or Path.cwd(), patches=[("its.patch", each) for each in patches])
    assert error.value.slug == slug
    return error.value


# -- which project -----------------------------------------------------------------------------------------------------


def test_the_project_is_the_repository_that_the_script_lies_in(project: Path, tmp_path: Path) -> None:
    git(project, "init", "--quiet")
    assert project_of(START, project) == project
    assert project_of(Start(script=Path("src/helper.py")), project) == project
    assert project_of(Start(script=Path("project/src/helper.py")), tmp_path) == project
    assert project_of(Start(module="src.helper"), project / "src") == project


def test_without_a_repository_it_is_the_working_folder_unless_the_script_lies_elsewhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_of(Start(script=Path("src/helper.py")), project) == project
    assert project_of(Start(module="helper"), project / "src") == project / "src"
    (tmp_path / "data").mkdir()
    assert project_of(Start(script=Path("../project/src/helper.py")), tmp_path / "data") == project / "src"
    # A home is no project, and neither is a whole machine.
    monkeypatch.setenv("HOME", str(tmp_path))
    assert project_of(Start(script=Path("project/train.py")), tmp_path) == project
    assert project_of(Start(script=project / "train.py"), Path("/")) == project


# -- which files -------------------------------------------------------------------------------------------------------


def test_another_version_of_the_script_stands_in_its_place(project: Path) -> None:
    made = planned(START, project, script=("fast.py", b"import torch, fast\n"))
    assert dict(made.files) == {"train.py": b"import torch, fast\n"}
    assert made.whole() == {str(project / "train.py"): b"import torch, fast\n"}
    assert made.called(Discretion()) == "fast.py"
    assert (project / "train.py").read_text() == "import torch\n"


@pytest.mark.parametrize("cwd", ["", "src"])
def test_a_patch_names_files_from_the_project_or_from_the_working_folder(project: Path, cwd: str) -> None:
    git(project, "init", "--quiet")
    start = Start(script=project / "train.py")
    for patch in (PATCH, BESIDE) if cwd else (PATCH,):
        made = planned(start, project / cwd, patches=[("its.patch", patch)])
        assert dict(made.files) == {"src/helper.py": b"one\n2\nthree\n"}
        assert dict(made.before) == {"src/helper.py": HELPER}


def test_all_of_it_is_one_edit(project: Path) -> None:
    again = PATCH.replace(b"-two\n+2\n", b"-2\n+zwei\n")
    script = b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-import torch, fast\n+import fast\n"
    made = planned(
        START,
        project,
        patches=[("a.patch", PATCH), ("b.patch", again), ("c.patch", script)],
        script=("fast.py", b"import torch, fast\n"),
        arguments=("--workers", "8"),
        variables={"OMP_NUM_THREADS": "1"},
    )
    assert dict(made.files) == {"src/helper.py": b"one\nzwei\nthree\n", "train.py": b"import fast\n"}
    assert made.edited(START).arguments == ("--workers", "8")
    assert made.called(Discretion()) == "a.patch, b.patch, c.patch, fast.py, --workers 8, OMP_NUM_THREADS=1"
    assert planned(START, project, arguments=(), name="bare").called(Discretion()) == "bare"
    assert planned(START, project, arguments=()).called(Discretion()) == "without arguments"


def test_what_it_is_called_tells_no_secret(project: Path) -> None:
    variables = {"HF_TOKEN": "abcdefgh12345", "A": "1"}
    made = planned(START, project, arguments=("--api-key", "qwertz98765"), variables=variables)
    known = discretion(["HF_TOKEN=abcdefgh12345"], {})
    assert made.called(known) == "--api-key '***', HF_TOKEN=***, A=1"
    assert made.told_variables(known) == {"HF_TOKEN": "***", "A": "1"}


def test_what_a_link_leads_to_is_edited_where_it_lies(project: Path, tmp_path: Path) -> None:
    (project / "lib").symlink_to("src")
    made = planned(START, project, patches=[("its.patch", PATCH.replace(b"src/", b"lib/"))])
    assert list(made.files) == ["src/helper.py"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper.py").write_bytes(HELPER)
    (project / "out").symlink_to(tmp_path / "elsewhere")
    error = refused("patch-outside", PATCH.replace(b"src/", b"out/"))
    assert error.sentence == "its.patch changes out/helper.py, which leads out of the project by a link."


def test_what_does_not_fit_is_refused_with_the_patch_s_name(project: Path) -> None:
    git(project, "init", "--quiet")
    error = refused("patch-does-not-apply", PATCH.replace(b"-two", b"-deux"))
    assert error.sentence.startswith("its.patch does not apply")
    # The patch was made for the project's root, and what is said is of that.
    error = refused("patch-does-not-apply", PATCH.replace(b"-two", b"-x"), cwd=project / "src")
    assert "src/helper.py" in error.sentence
    refused("patch-outside", PATCH.replace(b"src/", b"../"))
    refused("patch-unreadable", b"hello\n")


def test_an_edit_without_the_script_is_refused(project: Path) -> None:
    patch = b"--- a/train.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import torch\n"
    with pytest.raises(DoctorError) as error:
        planned(START, project, patches=[("its.patch", patch)])
    assert error.value.slug == "edit-removes-script"


def test_whether_it_changes_anything(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADS", "1")
    for same in (
        planned(START, project, script=("same.py", b"import torch\n")),
        planned(START, project, arguments=START.arguments),
        planned(START, project, variables={"THREADS": "1"}),
    ):
        assert same.changes_nothing(START)
    for other in (
        planned(START, project, script=("other.py", b"import torch\n\n")),
        planned(START, project, arguments=("--workers", "3")),
        planned(START, project, variables={"THREADS": "2"}),
    ):
        assert not other.changes_nothing(START)


def test_what_differs_as_a_patch_and_line_by_line(project: Path) -> None:
    files: dict[str, bytes | None] = {"src/helper.py": b"zero\none\ntwo\n", "new.py": b"1\n2\n", "old.py": None}
    made = Edit(root=project, files=files, before={"src/helper.py": HELPER, "old.py": b"gone\n"})
    assert made.diff() == (
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+1\n+2\n"
        "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- a/src/helper.py\n+++ b/src/helper.py\n@@ -1,3 +1,3 @@\n+zero\n one\n two\n-three\n"
    )
    found = made.differences()
    assert found.hunks == {"src/helper.py": [Hunk(0, 0, 1, 1), Hunk(3, 1, 3, 0)], "new.py": [Hunk(0, 0, 1, 2)]}
    assert found.changed("src/helper.py", 1)
    assert not found.changed("src/helper.py", 2)
    assert found.on_head("src/helper.py", 2) == ("src/helper.py", 3)


# -- whether it is Python ----------------------------------------------------------------------------------------------

BROKEN = b"import torch\n\nfor batch in loader\n    pass\n"


@pytest.mark.parametrize("asked", [False, True], ids=["this Python", "another Python"])
def test_what_does_not_parse_is_said_before_anything_starts(
    project: Path, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if asked:  # The same one by another name counts as another.
        monkeypatch.setattr(edit, "_OWN", "/elsewhere/python")
    start = Start(script=Path("train.py"), python=sys.executable)
    with pytest.raises(DoctorError) as error:
        check_parses(planned(start, project, script=("new.py", BROKEN)), start)
    assert error.value.slug == "edit-does-not-parse"
    assert error.value.sentence == "train.py has a syntax error in line 3 with the edit: expected ':'."
    assert error.value.exit_code == Exit.ENTRYPOINT_FAILED
    assert "for batch in loader" in error.value.detail
    check_parses(planned(start, project, script=("new.py", b"import torch, sys\n")), start)


def test_a_file_that_was_no_python_before_need_not_become_one(project: Path) -> None:
    (project / "src" / "helper.py").write_bytes(b"for x in y\n")
    made = Edit(root=project, files={"src/helper.py": b"for z in y\n"}, before={"src/helper.py": b"for x in y\n"})
    check_parses(made, START)
    check_parses(Edit(root=project, files={"notes.txt": b"for x in y\n", "gone.py": None}), START)
    with pytest.raises(DoctorError):
        check_parses(Edit(root=project, files={"new.py": b"for x in y\n"}), START)
