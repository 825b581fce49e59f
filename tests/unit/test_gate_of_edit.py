"""A program as written and edited as two sides: who starts where, with what, and what is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides.compared import Compared
from bottleneck_doctor.gate.sides.edit import Edit
from bottleneck_doctor.gate.sides.of_edit import of_edit
from bottleneck_doctor.measure.starter import Side
from bottleneck_doctor.protection.protector import FileProtector, Protector
from bottleneck_doctor.session.start import Start

FILES: dict[str, bytes | None] = {"train.py": b"edited\n"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("as written\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return root


def edit_of(root: Path, **given: object) -> Edit:
    return Edit(root=root, before={"train.py": b"as written\n"}, **{"files": FILES, **given})  # type: ignore[arg-type]


def both(compared: Compared) -> tuple[Side, Side]:
    assert compared.sides is not None
    return compared.sides


def test_in_a_copy_the_edited_one_has_folders_of_its_own(project: Path) -> None:
    start = Start(script=Path("train.py"), arguments=("--x",), in_place=True)
    with of_edit(start, edit_of(project), "fast.patch", steadied=True) as compared:
        base, head = both(compared)
        assert (base.cwd, base.argv) == (project, (sys.executable, "train.py", "--x"))
        assert head.argv == base.argv
        assert head.cwd != project
        assert (head.cwd / "train.py").read_bytes() == b"edited\n"
        assert compared.roots == {"base": (project,), "head": (head.cwd, project)}
        assert [each.slug for each in compared.warnings] == ["edited-in-copy"]
        assert type(head.protector) is Protector
        assert compared.texts == {"train.py": "edited\n"}
        assert compared.differences().changed("train.py", 1)
        assert (compared.base.name, compared.head.name) == ("as written", "fast.patch")
    assert not head.cwd.exists()
    assert (project / "train.py").read_text() == "as written\n"


def test_in_a_sandbox_both_are_started_alike(project: Path) -> None:
    start = Start(script=Path("train.py"), launcher=(sys.executable, "-m", "torch.distributed.run"))
    with of_edit(start, edit_of(project), "x", steadied=False) as compared:
        base, head = both(compared)
        if [each.slug for each in compared.warnings] == ["edited-in-copy"]:
            pytest.skip("no sandbox here")
        assert (base.cwd, base.argv, dict(base.environment)) == (head.cwd, head.argv, dict(head.environment))
        assert base.launched
        assert base.protector is not head.protector
        assert (base.name, head.name) == ("base", "head")
        assert (project / "train.py").read_text() == "as written\n"


def test_arguments_and_variables_are_the_edited_one_s(project: Path) -> None:
    given = edit_of(project, files={}, arguments=("--y",), variables={"MALLOC_TRIM_THRESHOLD_": "7", "A": "1"})
    start = Start(script=Path("train.py"), arguments=("--x",), in_place=True)
    with of_edit(start, given, "x", steadied=True) as compared:
        base, head = both(compared)
        assert (base.argv[-1], head.argv[-1]) == ("--x", "--y")
        assert "A" not in base.environment
        assert head.environment["A"] == "1"
        # The user's own value comes before ours.
        assert base.environment["MALLOC_TRIM_THRESHOLD_"] != "7"
        assert head.environment["MALLOC_TRIM_THRESHOLD_"] == "7"


@pytest.mark.parametrize("kind", ["listen", "srun", "slurm"])
def test_files_are_not_edited_for_ranks_that_would_not_see_it(
    project: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Start(script=Path("train.py"), listen=("here", 4000))
    if kind == "srun":
        start = Start(script=Path("train.py"), launcher=("/usr/bin/srun", "--ntasks", "2"))
    elif kind == "slurm":
        start = Start(script=Path("train.py"))
        monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    with pytest.raises(DoctorError) as refused, of_edit(start, edit_of(project), "x", steadied=True):
        pass
    assert refused.value.slug == "edit-out-of-reach"
    other = edit_of(project, files={}, variables={"A": "1"})
    with of_edit(start, other, "x", steadied=True) as compared:
        base, head = both(compared)
        assert head.cwd == base.cwd == project
        assert isinstance(head.protector, FileProtector)
        assert (base.listen, head.listen) == ((("here", 4000), ("here", 4001)) if kind == "listen" else (None, None))
    assert "A" not in os.environ
