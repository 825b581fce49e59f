"""The edited side where there is no sandbox: a copy of the project. Its code is its own, all else is the user's."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.test_gate_revision import git

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides import copied as laying
from bottleneck_doctor.gate.sides.copied import copied
from bottleneck_doctor.gate.sides.entrypoint import in_tree
from bottleneck_doctor.gate.sides.tree import Tree
from bottleneck_doctor.session.start import Start


@dataclass(frozen=True)
class Project:
    root: Path
    cwd: Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    root = tmp_path / "project"
    for name, text in {
        "train.py": "import sys, lib.model\nprint(__file__, lib.model.__file__, lib.model.SAID, sys.argv[1:])\n",
        "lib/__init__.py": "",
        "lib/model.py": "SAID = 'as written'\n",
        "lib/config.yaml": "workers: 2\n",
        "data/rows.bin": "rows",
        ".venv/pyvenv.cfg": "",
        ".venv/lib/torch.py": "",
        "lib/__pycache__/model.cpython-311.pyc": "stale",
        "old/only.py": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "lib" / "model.py").chmod(0o640)
    return root


EDITS: Mapping[str, bytes | None] = {
    "lib/model.py": b"SAID = 'edited'\n",
    "new/deep/made.py": b"MADE = 1\n",
    "lib/config.yaml": b"workers: 8\n",
    "old/only.py": None,
}


@contextmanager
def copy_of(root: Path, files: Mapping[str, bytes | None] = EDITS, *, cwd: Path | None = None) -> Iterator[Tree]:
    before = looks(root)
    place = Project(root, cwd or root)
    with copied(place, files, python=sys.executable, python_path=None, why="there is no sandbox here") as tree:
        yield tree
    assert looks(root) == before
    assert not tree.root.exists()


def looks(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run(tree: Tree, start: Start, root: Path) -> str:
    entrypoint = in_tree(start, Project(root, root), tree)
    assert entrypoint is not None
    environment = {**os.environ, **tree.environment}
    done = subprocess.run(
        [sys.executable, *entrypoint], cwd=tree.cwd, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_code_is_the_copy_s_own_and_all_else_is_the_user_s(project: Path) -> None:
    with copy_of(project) as tree:
        assert (tree.root / "train.py").is_file()
        assert not (tree.root / "train.py").is_symlink()
        assert (tree.root / "lib" / "model.py").read_bytes() == EDITS["lib/model.py"]
        assert stat.S_IMODE((tree.root / "lib" / "model.py").stat().st_mode) == 0o640
        assert (tree.root / "lib" / "config.yaml").read_bytes() == EDITS["lib/config.yaml"]
        assert (tree.root / "new" / "deep" / "made.py").exists()
        assert not (tree.root / "old").exists()
        assert not (tree.root / "lib" / "__pycache__").exists()
        for name in ("data", ".venv"):
            assert os.readlink(tree.root / name) == str(project / name)


def test_what_may_be_written_beside_code_is_the_copy_s_own_as_far_as_there_is_room(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "log.txt").write_text("of last week")
    (project / "model.pt").write_bytes(bytes(2 << 20))
    with copy_of(project) as tree:
        with (tree.root / "log.txt").open("a") as handle:
            handle.write("new")
        assert os.readlink(tree.root / "model.pt") == str(project / "model.pt")
    monkeypatch.setattr(laying, "_ROOM", 15)
    (project / "more.txt").write_text("12 bytes now")
    with copy_of(project) as tree:
        assert sum((tree.root / name).is_symlink() for name in ("log.txt", "more.txt")) == 1
        assert not (tree.root / "train.py").is_symlink()


@pytest.mark.parametrize("start", [Start(script=Path("train.py")), Start(module="train")])
def test_the_edited_program_imports_the_edited_code(project: Path, start: Start) -> None:
    with copy_of(project) as tree:
        said = run(tree, start, project)
        assert str(tree.root / "lib" / "model.py") in said
        assert " edited []" in said


def test_a_script_that_is_named_by_its_whole_path_runs_in_the_copy(project: Path) -> None:
    start = Start(script=project / "train.py", arguments=(str(project / "data"), f"--out={project}/lib", "/usr"))
    with copy_of(project) as tree:
        said = run(tree, start, project)
        assert said.startswith(str(tree.root / "train.py"))
        assert f"['{tree.root}/data', '--out={tree.root}/lib', '/usr']" in said


def test_one_that_is_started_from_elsewhere_runs_in_the_copy_too(project: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    place = Project(project, tmp_path / "data")
    with copied(place, EDITS, python=sys.executable, python_path=None, why="") as tree:
        assert tree.cwd == tmp_path / "data"
        entrypoint = in_tree(Start(script=Path("../project/train.py")), place, tree)
        assert entrypoint == (str(tree.root / "train.py"),)


def test_the_working_folder_is_a_folder_of_the_copy_s_own(project: Path) -> None:
    with copy_of(project, cwd=project / "data") as tree:
        assert tree.cwd == tree.root / "data"
        assert not tree.cwd.is_symlink()
        assert (tree.cwd / "rows.bin").read_text() == "rows"
        assert (tree.cwd / ".." / "train.py").read_text().startswith("import sys")


def test_links_of_the_project_lead_into_the_copy_or_out_as_before(project: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "x.py").write_text("")
    (project / "current.py").symlink_to("lib/model.py")
    (project / "whole.py").symlink_to(project / "lib" / "model.py")
    (project / "shared").symlink_to("../shared")
    (project / "broken").symlink_to("nowhere")
    with copy_of(project) as tree:
        for name in ("current.py", "whole.py"):
            assert (tree.root / name).resolve() == tree.root / "lib" / "model.py"
        assert (tree.root / "shared").resolve() == tmp_path / "shared"
        assert (tree.root / "broken").is_symlink()
        # What lies beside the project lies beside the copy.
        assert (tree.root / ".." / "shared" / "x.py").exists()


def test_an_edit_never_goes_through_a_link(project: Path, tmp_path: Path) -> None:
    """A folder that is linked as a whole is the user's, and so is what lies in it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.py").write_text("mine")
    (project / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DoctorError) as refused, copy_of(project, {"out/x.py": b"edited"}):
        pass
    assert refused.value.slug == "project-not-copied"
    assert (tmp_path / "elsewhere" / "x.py").read_text() == "mine"


@pytest.mark.parametrize("where", ["home", "root", "environment"])
def test_what_is_no_project_is_refused(project: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project if where == "home" else project.parent))
    root = Path("/") if where == "root" else project
    files = {".venv/lib/torch.py": b""} if where == "environment" else EDITS
    place = Project(root, project)
    with (
        pytest.raises(DoctorError) as refused,
        copied(place, files, python=sys.executable, python_path=None, why="there is no sandbox here"),
    ):
        pass
    assert refused.value.slug == "project-not-copied"
    assert "because there is no sandbox here" in refused.value.sentence
    assert not list((project.parent / "tmp").iterdir())


def test_code_that_pythonpath_names_is_the_copy_s(project: Path) -> None:
    (project / "src" / "pets").mkdir(parents=True)
    (project / "src" / "pets" / "__init__.py").write_text("SAID = 'as written'\n")
    place = Project(project, project)
    given = f"{project}/src{os.pathsep}/elsewhere"
    edits = {"src/pets/__init__.py": b"SAID = 'edited'\n"}
    with copied(place, edits, python=sys.executable, python_path=given, why="") as tree:
        assert tree.environment["PYTHONPATH"].split(os.pathsep)[:2] == [str(tree.root / "src"), "/elsewhere"]
        command = [sys.executable, "-c", "import pets; print(pets.SAID)"]
        environment = {**os.environ, **tree.environment}
        done = subprocess.run(command, cwd=tree.cwd, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "edited\n"


def test_git_knows_its_repository_and_writes_nothing_into_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(project, "init", "--quiet")
    git(project, "add", "train.py")
    git(project, "commit", "--quiet", "--message", "First")
    commit = git(project, "rev-parse", "HEAD")
    with copy_of(project) as tree:
        environment = {**os.environ, **tree.environment}
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain"]):
            done = subprocess.run(["git", *words], cwd=tree.cwd, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if words[0] == "rev-parse":
                assert done.stdout.strip() == commit
