"""How a check starts its script on the base: from the base's tree, wherever and however it was named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND
from tests.unit.test_gate_revision import commit, git, repository

from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.gate.check import check
from bottleneck_doctor.gate.paired import failure
from bottleneck_doctor.gate.request import CheckRequest
from bottleneck_doctor.gate.sides import entrypoint, revision, worktree
from bottleneck_doctor.gate.sides.revision import Revisions
from bottleneck_doctor.gate.sides.tree import Tree
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.starter import Broken, Live, Side, _own_port
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.session.ending import Ending, Hung, SessionOver, ended
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import SilentProgress

__all__ = ["repository"]  # A fixture.

OnBase = Callable[..., tuple[tuple[str, ...] | None, Path]]


@pytest.fixture
def on_base(repository: Path, monkeypatch: pytest.MonkeyPatch) -> OnBase:
    """The entrypoint on the base, and what of its script lies there when it is told."""

    def started(script: str | None, *, module: str | None = None, cwd: str = "") -> tuple[tuple[str, ...] | None, Path]:
        monkeypatch.chdir(repository / cwd)
        start = Start(script=None if script is None else Path(script), module=module, arguments=("--x",))
        revisions = revision.find(Path.cwd(), "HEAD~1", merge_base=False)
        with worktree.checked_out(revisions, python=sys.executable, setup=None) as tree:
            return entrypoint.in_tree(start, revisions, tree), tree.root

    return started


def test_scripts_are_named_as_before(on_base: OnBase) -> None:
    assert on_base("train.py")[0] == ("train.py", "--x")
    assert on_base("../train.py", cwd="src")[0] == ("../train.py", "--x")


def test_an_absolute_path_is_that_of_the_base(repository: Path, on_base: OnBase, tmp_path: Path) -> None:
    there, tree = on_base(str(repository / "train.py"))
    assert there == (str(tree / "train.py"), "--x")
    (tmp_path / "link").symlink_to(repository)
    there, tree = on_base(str(tmp_path / "link" / "train.py"))
    assert there == (str(tree / "train.py"), "--x")


def test_a_script_from_elsewhere_is_the_same_on_both_sides(on_base: OnBase, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("")
    assert on_base("../own.py")[0] == (str(tmp_path / "own.py"), "--x")


def test_what_the_base_lacks_is_new(repository: Path, on_base: OnBase) -> None:
    commit(repository, new_py="", src__pet__extra_py="")
    assert on_base("new.py")[0] is None
    assert on_base(None, module="src.pet.extra")[0] is None
    assert on_base(None, module="src.pet.code")[0] == ("-m", "src.pet.code", "--x")
    assert on_base(None, module="installed.elsewhere")[0] is not None


def test_an_untracked_script_runs_among_the_base_s_files(
    repository: Path,
    on_base: OnBase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (repository / "trial.py").write_text("import train")
    seen: list[bool] = []
    whole = entrypoint.in_tree

    def look(start: Start, revisions: Revisions, tree: Tree) -> tuple[str, ...] | None:
        made = whole(start, revisions, tree)
        seen.append((tree.root / "trial.py").is_symlink() or not (tree.root / "trial.py").is_file())
        return made

    monkeypatch.setattr(entrypoint, "in_tree", look)
    assert on_base("trial.py")[0] == ("trial.py", "--x")
    assert seen == [False]
    assert not os.path.islink(repository / "trial.py")
    assert git(repository, "status", "--porcelain") == "?? trial.py"


def test_a_command_is_that_of_each_side(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / ".venv" / "bin").mkdir(parents=True)
    (repository / ".venv" / "bin" / "trl").write_text("")
    (repository / "run.sh").write_text("")
    monkeypatch.chdir(repository)

    (repository / "mine" / "bin").mkdir(parents=True)
    (repository / "mine" / "pyvenv.cfg").write_text("")
    (repository / "mine" / "bin" / "torchrun").write_text("")

    def on_base(*words: str) -> tuple[tuple[str, ...] | None, Path]:
        revisions = revision.find(Path.cwd(), "HEAD~1", merge_base=False)
        with worktree.checked_out(revisions, python=sys.executable, setup=None) as tree:
            return entrypoint.in_tree(Start(words=words), revisions, tree), tree.root

    assert on_base("/usr/bin/env", "x")[0] == ("/usr/bin/env", "x")
    trl = str(repository / ".venv" / "bin" / "trl")
    assert on_base(trl, "sft")[0] == (trl, "sft")
    assert on_base("./train.py", "x")[0] == ("./train.py", "x")
    command, root = on_base(str(repository / "train.py"))
    assert command == (str(root / "train.py"),)
    # An environment by another name is nobody's either.
    own = str(repository / "mine" / "bin" / "torchrun")
    command, root = on_base(own, str(repository / "train.py"), f"--config={repository}/train.py", f"{repository}/gone")
    assert command == (own, str(root / "train.py"), f"--config={root}/train.py", f"{repository}/gone")
    commit(repository, new_py="")
    assert on_base("./new.py")[0] is None
    assert on_base("/usr/bin/env", "python", "new.py", "train.py")[0] is None
    assert on_base("/usr/bin/env", "python", "train.py", "elsewhere.py")[0] is not None


def test_arguments_that_name_files_of_the_repository_name_the_base_s(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "data").mkdir()
    monkeypatch.chdir(repository)
    words = (str(repository / "src"), f"--data={repository}/data", f"--out={repository}/out", "/usr", "src")
    for started in (Start(script=Path("train.py"), arguments=words), Start(module="train", arguments=words)):
        revisions = revision.find(Path.cwd(), "HEAD~1", merge_base=False)
        with worktree.checked_out(revisions, python=sys.executable, setup=None) as tree:
            there = entrypoint.in_tree(started, revisions, tree)
            assert there is not None
            assert there[-5:] == (
                *(f"{tree.root}/src", f"--data={tree.root}/data", f"--out={repository}/out"),
                *("/usr", "src"),
            )


def test_git_that_fails_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    (repository / ".git" / "index").write_text("broken")
    with pytest.raises(DoctorError) as failed:
        check(CheckRequest(start=Start(script=Path("train.py")), base_ref="HEAD~1"), SilentProgress())
    assert failed.value.slug == "git-failed"
    assert "index" in failed.value.detail


def test_each_side_is_launched_at_a_place_of_its_own(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    launcher = (sys.executable, "-m", "torch.distributed.run")
    request = CheckRequest(
        start=Start(script=Path("train.py"), launcher=launcher, listen=("here", 4000), in_place=True), base_ref="HEAD~1"
    )
    with request.compared(lambda said: None) as compared:
        assert compared.sides is not None
        base, head = compared.sides
    assert base.argv == head.argv == (*launcher, "train.py")
    assert base.launched
    assert [base.listen, head.listen] == [("here", 4000), ("here", 4001)]
    ports = [_own_port(side.environment)["MASTER_PORT"] for side in (base, head)]
    assert all(port.isdigit() for port in ports)


def test_a_port_that_the_other_side_has_is_said() -> None:
    side = Side(name="head", said="the head (x)", argv=(), cwd=Path(), environment={}, protector=Protector())
    tail = "RuntimeError: The server socket has failed to listen. port: 12355, code: -98, name: EADDRINUSE"
    live = Live(side, Session(Command((), Path()), 1))
    try:
        told = failure(Broken(live, SessionOver(Ending.CRASH, tail, tail=tail)))
        assert told.slug == "port-taken"
        assert "MASTER_PORT" in told.next_step
        other = failure(Broken(live, SessionOver(Ending.CRASH, "no such file", tail="no such file")))
        assert other.slug == "head-failed"
    finally:
        live.session.stop()


@pytest.mark.parametrize("alone", [True, False])
def test_a_side_that_hangs_is_not_said_to_fail(alone: bool) -> None:
    side = Side(name="base", said="the base (x)", argv=(), cwd=Path(), environment={}, protector=Protector())
    live = Live(side, Session(Command((), Path()), 1))
    try:
        told = failure(Broken(live, ended(Hung(40.0, tail="Epoch 1")), alone=alone))
    finally:
        live.session.stop()
    assert (told.slug, told.exit_code, told.detail) == ("training-hung", Exit.ENTRYPOINT_FAILED, "Epoch 1")
    where = "The base (x)" if alone else "Both revisions"
    assert told.sentence == (
        f"{where}: The training made no step for 40 s under doctor, before doctor changed anything."
    )


def test_windows_of_a_check_without_a_budget_are_waited_for() -> None:
    """So many pairs were asked for, however long each takes: what the pairs before took leaves no less patience."""
    side = Side(name="head", said="the head", argv=(), cwd=Path(), environment={}, protector=Protector())
    patience = {}
    for strict in (True, False):
        live = Live(side, Session(Command((), Path()), 1), found=FOUND)
        now = [0.0]
        budget = Budget(300.0, strict=strict, now=lambda now=now: now[0])  # type: ignore[misc]
        now[0] = 500.0
        some = SideBySide([live], budget, Outside(), window_seconds=0.7)
        patience[strict] = some.prober(live)._budget.left()
        live.session.stop()
    assert patience[True] == pytest.approx(100.0, abs=5.0)
    assert patience[False] == float("inf")
