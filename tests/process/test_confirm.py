"""`doctor run --confirm` as a user runs it: the program with the change made is measured, and no file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE
from tests.process.test_files import looks

from bottleneck_doctor.documents.check import HOST_MEMORY
from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate.check import check
from bottleneck_doctor.gate.request import TryRequest
from bottleneck_doctor.gate.sides.edit import Edit
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import SilentProgress

pytestmark = pytest.mark.process

TRAIN = (
    PRELUDE
    + """
workers = int(os.environ.get("WORKERS", "0"))

for epoch in range(100000):
    for batch in DataLoader(Rows(400, 0.002), batch_size=8, num_workers=workers):
        train_on(batch)
        torch.save({}, "checkpoint.pt")
"""
)
"""A step waits 16 ms for a batch that a worker makes just as fast, so more of them share the work: they sleep."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(TRAIN.replace("num_workers=workers", "num_workers=0"))
    return root


def run(project: Path, *options: str, words: Sequence[str] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--no-explain", "--only", "workers", "--seed", "1"]
    return subprocess.Popen(
        [*command, "-o", str(project.parent / "out"), *options, "train.py", "--", *words],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def report(project: Path) -> Result:
    path = project.parent / "out" / "report.json"
    return from_json(path.read_bytes(), source="report.json")


@pytest.mark.slow
def test_the_changed_program_gives_the_headline(project: Path) -> None:
    before = looks(project)
    process = run(project, "--budget", "60s", "--confirm")
    said, heard = process.communicate(timeout=240)
    assert process.returncode == Exit.DONE, heard
    result = report(project)
    confirmation = result.confirmation
    assert confirmation is not None, heard
    assert confirmation.outcome in ("agrees", "differs"), confirmation
    assert confirmation.by == "edit"
    assert confirmation.speedup is not None
    assert confirmation.speedup.low > 1
    assert "measured with the change made" in result.verdict.sentence
    assert "Confirmed" in said
    title = (project.parent / "out" / "report-artifacts" / "fix.patch").read_text().splitlines()[0]
    assert title.startswith("bottleneck-doctor: ")
    assert title.endswith("pairs of processes)"), "as the headline has it"
    assert looks(project) == before


@pytest.mark.slow
def test_words_of_the_command_line_are_changed_for_the_changed_program(project: Path) -> None:
    option = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers', type=int, default=0)\n"
    )
    source = TRAIN.replace('workers = int(os.environ.get("WORKERS", "0"))', "workers = parser.parse_args().workers")
    (project / "train.py").write_text(source.replace("workers = parser", f"{option}workers = parser"))
    before = looks(project)
    process = run(project, "--budget", "60s", "--confirm", words=("--workers", "0"))
    said, heard = process.communicate(timeout=240)
    assert process.returncode == Exit.DONE, heard
    confirmation = report(project).confirmation
    assert confirmation is not None, heard
    assert confirmation.by == "edit"
    assert confirmation.outcome in ("agrees", "differs"), confirmation
    assert "in place of `--workers 0`" in said
    assert looks(project) == before


@pytest.mark.slow
def test_a_setting_is_on_throughout_where_no_edit_brings_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = looks(project)
    monkeypatch.chdir(project)
    edit = Edit(root=project, setting={"num_workers": 2}, name="two workers")
    request = TryRequest(start=Start(script=Path("train.py")), edit=edit, pairs=3, steady=False, seed=1)
    found = check(request, SilentProgress()).check
    assert found.edit is not None
    assert found.edit.speedup is not None
    assert found.edit.speedup.low > 1.2, found.sentence
    memory = next(each for each in found.metrics if each.id == HOST_MEMORY)
    assert memory.base is not None
    assert memory.head is not None
    assert memory.head > memory.base, "the workers that the script does not have are counted, too"
    assert looks(project) == before


@pytest.mark.slow(together=True)
def test_interrupted_the_report_stays_as_it_was(project: Path) -> None:
    before = looks(project)
    process = run(project, "--budget", "60s", "--confirm")
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if "Confirming it" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    said, rest = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED, "".join(heard) + rest
    result = report(project)
    assert result.confirmation is None
    assert "faster" in result.verdict.sentence
    assert "Report:" in said
    assert looks(project) == before


@pytest.mark.slow(together=True)
def test_it_is_left_out_where_nobody_wants_it(project: Path) -> None:
    process = run(project, "--budget", "60s", "--no-confirm")
    _, heard = process.communicate(timeout=120)
    assert process.returncode == Exit.DONE, heard
    assert report(project).confirmation is None
    assert "Confirming it" not in heard
