"""`doctor check` as CI runs it: a small repository with a commit that made training slower, and one that did not."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, wait_until
from tests.process.test_ranks import LOOP as RANKS_LOOP
from tests.process.test_ranks import RANKS

from bottleneck_doctor.documents.check import Check, GrowthNode
from bottleneck_doctor.documents.check_json import from_json
from bottleneck_doctor.errors import Exit

pytestmark = pytest.mark.process

TRAIN = (
    PRELUDE
    + """
from helper import prepare

open("data/rows.txt").read()
note("log.txt", "started")
if os.path.exists("checkpoint.pt"):
    raise SystemExit("somebody left a checkpoint")


class Prepared(Rows):
    def __getitem__(self, index):
        rows, label = super().__getitem__(index)
        return prepare(rows), label


for epoch in range(100000):
    for batch in DataLoader(Prepared(400, 0.001), batch_size=4):
        train_on(batch)
        torch.save({}, "checkpoint.pt")
"""
)
"""A step is 4 ms of loading and 1 ms or so of everything else."""

SECRET = "not-for-everybody-1742"
QUICK = "def prepare(rows):\n    return rows\n"
SLOW = "import time\n\n\ndef prepare(rows):\n    time.sleep(0.001)\n    return rows\n"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, message: str, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean clone with data that git does not track; the base is tagged."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / ".gitignore").write_text("data/\n")
    commit(root, "Train", train=TRAIN, helper=QUICK)
    git(root, "tag", "base")
    (root / "data").mkdir()
    (root / "data" / "rows.txt").write_text("rows")
    return root


def check(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bottleneck_doctor", "check", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
    )


def document(path: Path) -> Check:
    return from_json(path.read_bytes(), source=str(path))


def calls(node: GrowthNode) -> Iterator[GrowthNode]:
    yield node
    for child in node.children:
        yield from calls(child)


def untouched(repository: Path) -> None:
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not git(repository, "status", "--porcelain")
    assert sorted(path.name for path in (repository / "data").iterdir()) == ["rows.txt"]


@pytest.mark.slow
def test_a_regression_fails_and_is_explained(repository: Path, tmp_path: Path) -> None:
    commit(repository, "Prepare with care", helper=SLOW)
    outputs = ("--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md"))
    command = ("--base-ref", "base", "--pairs", "3", "--seed", "1", *outputs, "train.py", "--", "--api-key", SECRET)
    done = check(*command, cwd=repository)
    assert done.returncode == Exit.REGRESSION, done.stderr + done.stdout
    for text in (done.stdout, done.stderr, *((tmp_path / name).read_text() for name in ("out.json", "out.md"))):
        assert SECRET not in text
    found = document(tmp_path / "out.json")
    assert found.status == "regressed"
    (step,) = (metric for metric in found.metrics if metric.id == "step_time")
    assert step.verdict == "regression"
    assert step.change is not None
    assert step.smallest is not None
    assert step.low is not None
    assert 0.05 < step.low < step.change
    assert 0.3 < step.change < 2
    assert len(found.pairs) == 3
    assert found.commits[0].endswith("Prepare with care")
    assert next(each.name for each in found.culprits if each.kind == "phase") == "data_wait"
    function = found.culprits[0]
    assert (function.kind, function.name) == ("function", "prepare")
    assert function.changed_here
    assert function.site is not None
    assert Path(function.site.file) == repository / "helper.py"
    assert function.site.line == 5
    (tree,) = found.growth
    assert tree.role == "main"
    assert tree.root.head > 1.2 * tree.root.base > 0
    assert any(each.name == "prepare" and each.own and each.head > each.base for each in calls(tree.root))
    assert "Regressed: A step takes" in done.stdout
    assert "helper.py" in done.stdout
    assert "steady" in done.stdout
    assert "prepare" in (tmp_path / "out.md").read_text()
    untouched(repository)


def test_a_script_that_only_the_head_has_is_new(repository: Path) -> None:
    commit(repository, "Another", other=TRAIN)
    done = check("--base-ref", "base", "--json", "-", "other.py", cwd=repository)
    assert done.returncode == Exit.DONE, done.stderr
    assert json.loads(done.stdout)["status"] == "new"
    assert "nothing to compare" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "slug", "code"),
    [
        (("--base-ref", "nowhere", "train.py"), "unknown-ref", Exit.USAGE),
        (("train.py",), "usage", Exit.USAGE),
        (("--base-ref", "base", "--threshold", "0.9%", "train.py"), "threshold-too-small", Exit.USAGE),
        (("--base-ref", "base", "--threshold", "much", "train.py"), "usage", Exit.USAGE),
        (("--base-ref", "base", "--epochs", "3", "train.py"), "usage", Exit.USAGE),
    ],
)
def test_bad_input(repository: Path, arguments: tuple[str, ...], slug: str, code: Exit) -> None:
    done = check(*arguments, cwd=repository)
    assert done.returncode == code
    assert f"[{slug}]" in done.stderr


@pytest.mark.parametrize("side", ["base", pytest.param("head", marks=pytest.mark.slow)])
def test_a_script_that_fails_on_one_side(repository: Path, side: str) -> None:
    broken = "raise RuntimeError('no such rows')\n"
    if side == "base":
        commit(repository, "Break", helper=broken)
        git(repository, "tag", "--force", "base")
        commit(repository, "Mend", helper=QUICK)
    else:
        commit(repository, "Break", helper=broken)
    done = check("--base-ref", "base", "train.py", cwd=repository)
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stdout
    assert f"[{side}-failed]" in done.stderr
    assert "the other side trains" in done.stderr
    assert "no such rows" in done.stderr
    untouched(repository)


@pytest.mark.slow
def test_the_same_revision_passes(repository: Path, tmp_path: Path) -> None:
    (repository / "helper.py").write_text(QUICK + "\n\n# A comment.\n")
    arguments = ("--base-ref", "base", "--budget", "70s", "--json", str(tmp_path / "out.json"), "train.py")
    done = check(*arguments, cwd=repository)
    assert done.returncode == Exit.DONE, done.stderr
    found = document(tmp_path / "out.json")
    assert found.status in ("passed", "cannot_tell")
    assert found.head.dirty
    assert "head-dirty" in [warning.slug for warning in found.warnings]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_an_interrupted_check_leaves_nothing(repository: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "bottleneck_doctor", "check", "--base-ref", "base", "train.py"],
        cwd=repository,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: len(git(repository, "worktree", "list").splitlines()) == 2, 60)
    time.sleep(4)  # By then processes train, or are about to.
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED, said
    untouched(repository)


@pytest.mark.slow(together=True)
def test_a_module_with_a_package_of_its_own(repository: Path, tmp_path: Path) -> None:
    """Each side imports its own package, though PYTHONPATH names the head's."""
    package = repository / "src" / "pets"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(QUICK)
    (package / "train.py").write_text(TRAIN.replace("from helper", "from pets"))
    commit(repository, "A package")
    git(repository, "tag", "--force", "base")
    (package / "__init__.py").write_text(SLOW)
    commit(repository, "Slower")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "bottleneck_doctor",
            "check",
            "--base-ref",
            "base",
            "--budget",
            "100s",
            "-m",
            "pets.train",
        ],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(repository / "src"), os.environ.get("PYTHONPATH", "")])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == Exit.REGRESSION, done.stderr + done.stdout
    assert "src/pets/__init__.py" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch.distributed") is None, reason="this torch knows no ranks")
def test_several_processes_of_each_revision(repository: Path, tmp_path: Path) -> None:
    """Both stand at once, each with two ranks: they meet at ports of their own, and leave nothing behind."""
    ranks = (
        RANKS + "from helper import prepare\n" + RANKS_LOOP.replace("batch in loader", "batch in map(prepare, loader)")
    )
    commit(repository, "In ranks", train=ranks, helper="def prepare(batch):\n    return batch\n")
    git(repository, "tag", "--force", "base")
    commit(
        repository,
        "Prepare with care",
        helper="import time\n\n\ndef prepare(batch):\n    time.sleep(0.004)\n    return batch\n",
    )
    launcher = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2"
    options = ("--base-ref", "base", "--pairs", "3", "--launch", launcher, "--json", str(tmp_path / "out.json"))
    done = check(*options, "train.py", cwd=repository)
    assert done.returncode == Exit.REGRESSION, done.stderr + done.stdout
    found = document(tmp_path / "out.json")
    (step,) = (metric for metric in found.metrics if metric.id == "step_time")
    assert step.change is not None
    assert 0.2 < step.change < 3
    assert "--launch" in found.command
    untouched(repository)
