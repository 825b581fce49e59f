"""`doctor try` as a user runs it: edits that make a training faster and slower, beside the files as they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, wait_until
from tests.process.test_files import _without_the_right_to_mount, looks, protecting_here

from bottleneck_doctor.documents.check import Check
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
seconds = float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 0.001


class Prepared(Rows):
    def __getitem__(self, index):
        rows, label = super().__getitem__(index)
        return prepare(rows), label


for epoch in range(100000):
    for batch in DataLoader(Prepared(400, seconds), batch_size=4):
        train_on(batch)
        torch.save({}, "checkpoint.pt")
"""
)
"""A step is 4 ms of loading, 20 ms of preparing, and 1 ms or so of everything else."""

HELPER = "import time\n\n\ndef prepare(rows):\n    time.sleep(0.005)\n    return rows\n"
PATCH = """\
--- a/helper.py
+++ b/helper.py
@@ -2,5 +2,4 @@


 def prepare(rows):
-    time.sleep(0.005)
     return rows
""".replace("\n\n\n def", "\n \n \n def")
SECRET = "not-for-everybody-1742"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a repository."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "data" / "rows.txt").write_text("rows")
    (root / "train.py").write_text(TRAIN)
    (root / "helper.py").write_text(HELPER)
    (root / "fast.patch").write_text(PATCH)
    return root


def try_(*arguments: str, cwd: Path, sandbox: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bottleneck_doctor", "try", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        preexec_fn=None if sandbox else _without_the_right_to_mount,
    )


def document(text: str) -> Check:
    return from_json(text.encode(), source="stdout")


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "copy"])
def test_an_edit_that_takes_a_sleep_out_is_faster_and_no_file_changes(project: Path, sandbox: bool) -> None:
    if not sandbox and os.geteuid() != 0:
        pytest.skip("only root can lose the right to mount")
    before = looks(project)
    options = ("--patch", "fast.patch", "--pairs", "3", "--seed", "1", "--json", "-")
    done = try_(*options, "train.py", "--", "--api-key", SECRET, cwd=project, sandbox=sandbox)
    assert done.returncode == Exit.DONE, done.stderr
    assert SECRET not in done.stdout + done.stderr
    found = document(done.stdout)
    assert found.edit is not None
    assert found.edit.files == ["helper.py"]
    assert "-    time.sleep(0.005)" in found.edit.diff
    step = found.metrics[0]
    assert (step.id, step.verdict, found.status) == ("step_time", "improvement", "passed"), done.stderr
    assert found.edit.speedup is not None
    assert 2 < found.edit.speedup.estimate < 10
    assert found.edit.speedup.low > 1
    assert (found.base.name, found.head.name) == ("as written", "fast.patch")
    assert found.losses is not None
    assert found.losses.verdict in ("same", "alike")
    assert found.losses.steps > 100
    assert "Faster: The edit makes training" in done.stderr
    copied = {"edited-in-copy"} if not sandbox or not protecting_here(project) else set()
    assert {warning.slug for warning in found.warnings} & {"edited-in-copy"} == copied
    assert looks(project) == before


LEARNS = (
    PRELUDE
    + """
torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
truth = torch.randn(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
rows = torch.randn(4000, 16)
made = torch.utils.data.TensorDataset(rows, rows @ truth + 0.3 * torch.randn(4000, 1))

for epoch in range(100000):
    for inputs, targets in DataLoader(made, batch_size=8, shuffle=True):
        time.sleep(0.002)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
"""
)


@pytest.mark.slow
def test_an_edit_that_breaks_the_training_fails_however_fast_it_is(project: Path) -> None:
    (project / "train.py").write_text(LEARNS)
    (project / "broken.py").write_text(LEARNS.replace("        optimizer.zero_grad()\n", "").replace("0.002", "0.0005"))
    done = try_("--edit", "broken.py", "--pairs", "3", "--json", "-", "train.py", cwd=project)
    assert done.returncode == Exit.REGRESSION, done.stderr
    found = document(done.stdout)
    assert found.losses is not None
    assert found.losses.verdict in ("moved", "not_finite"), found.losses
    assert "Another loss: The edited program trains to" in done.stderr
    assert len(found.losses.curve) > 5


@pytest.mark.slow
def test_an_edit_that_leaves_the_training_as_it_is_has_the_same_losses(project: Path) -> None:
    (project / "train.py").write_text(LEARNS)
    (project / "quick.py").write_text(LEARNS.replace("0.002", "0.0005"))
    done = try_("--edit", "quick.py", "--pairs", "3", "--json", "-", "train.py", cwd=project)
    assert done.returncode == Exit.DONE, done.stderr
    found = document(done.stdout)
    assert found.losses is not None
    assert (found.losses.verdict, found.losses.difference) == ("same", 0.0)


@pytest.mark.slow
def test_an_edit_that_slows_exits_with_1_and_is_explained(project: Path, tmp_path: Path) -> None:
    before = looks(project)
    slow = tmp_path / "slow.py"
    slow.write_text(TRAIN.replace("        return prepare(", "        time.sleep(0.02)\n        return prepare("))
    done = try_("--edit", str(slow), "--pairs", "3", "--json", "-", "train.py", cwd=project)
    assert done.returncode == Exit.REGRESSION, done.stderr
    found = document(done.stdout)
    assert (found.status, found.metrics[0].verdict) == ("regressed", "regression")
    function = next(each for each in found.culprits if each.kind == "function")
    assert (function.name.rpartition(".")[2], function.changed_here) == ("__getitem__", True)
    assert function.site is not None
    assert Path(function.site.file) == project / "train.py"
    assert "Slower: The edit makes training slower" in done.stderr
    assert looks(project) == before


@pytest.mark.slow
def test_other_arguments_and_a_variable(project: Path) -> None:
    options = ("--args", "--seconds 0.0001", "--env", "A=1", "--pairs", "3", "--json", "-")
    done = try_(*options, "train.py", "--", "--seconds", "0.02", cwd=project)
    assert done.returncode == Exit.DONE, done.stderr
    found = document(done.stdout)
    assert found.edit is not None
    assert (found.edit.files, found.edit.diff) == ([], "")
    assert (found.edit.arguments, found.edit.variables) == (["--seconds", "0.0001"], {"A": "1"})
    assert found.metrics[0].verdict == "improvement", done.stderr
    assert found.entrypoint.argv[-2:] == ["--seconds", "0.02"]


@pytest.mark.slow
def test_several_edits_run_in_one_race(project: Path) -> None:
    (project / "broken.py").write_text("raise RuntimeError('no such rows')\n")
    before = looks(project)
    options = ["--patch", "fast.patch", "--edit", "broken.py", "--args", "--seconds 0.0001", "--pairs", "3"]
    done = try_("--each", *options, "--json", "-", "train.py", "--", "--seconds", "0.02", cwd=project)
    assert done.returncode == Exit.DONE, done.stderr
    found = document(done.stdout)
    assert [each.name for each in found.race] == ["--seconds 0.0001", "fast.patch", "broken.py"]
    worth = [each.edit.speedup for each in found.race[:2]]
    assert all(each is not None and each.low > 1 for each in worth), done.stderr
    assert found.race[2].failed
    assert "no such rows" in found.race[2].sentence
    assert found.edit is not None
    assert found.edit.arguments == ["--seconds", "0.0001"]
    assert "Of 3 edits, `--seconds 0.0001` is ahead." in done.stderr
    assert looks(project) == before


def test_an_edited_program_that_fails_is_told_with_its_last_words(project: Path) -> None:
    before = looks(project)
    broken = TRAIN.replace("seconds = float", 'raise RuntimeError("no such rows")\nseconds = float')
    (project / "broken.py").write_text(broken)
    done = try_("--edit", "broken.py", "--json", "out.json", "train.py", cwd=project)
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stdout
    said = next(line for line in done.stderr.splitlines() if "[edited-failed]" in line)
    assert "The edited program fails; as written it trains: RuntimeError: no such rows." in said
    assert "Traceback" in done.stderr
    (project / "broken.py").unlink()
    assert looks(project) == before


def test_an_interrupted_one_leaves_nothing(project: Path) -> None:
    before = looks(project)
    process = subprocess.Popen(
        [sys.executable, "-m", "bottleneck_doctor", "try", "-v", "--patch", "fast.patch", "train.py"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids: set[str] = set()

    def trains() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
                if b"train.py" in words[-2:] and os.readlink(path.with_name("cwd")) == str(project):
                    pids.add(path.parent.name)
            except OSError:
                continue
        return len(pids - {str(process.pid)}) >= 2

    try:
        assert wait_until(trains, 60)
        time.sleep(2)
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED, said
    assert looks(project) == before


def test_a_patch_that_does_not_fit_starts_nothing(project: Path) -> None:
    (project / "bad.patch").write_text(PATCH.replace("-    time.sleep(0.005)", "-    time.sleep(1)"))
    done = try_("--patch", "bad.patch", "--json", "-", "train.py", cwd=project)
    assert done.returncode == Exit.USAGE
    assert done.stdout == ""
    assert "bad.patch does not apply" in done.stderr
    assert not (project / "log.txt").exists()
