"""`doctor baseline` and `doctor check --baseline` with real processes, and a real look at this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents import stored_baseline
from bottleneck_doctor.documents.check_json import from_json
from bottleneck_doctor.documents.stored_baseline import Stored
from bottleneck_doctor.errors import Exit

pytestmark = pytest.mark.process

TRAIN = (
    PRELUDE
    + """
class Prepared(Rows):
    def __getitem__(self, index):
        time.sleep(0.0005 if os.path.exists("slow") else 0)
        return super().__getitem__(index)


for epoch in range(100000):
    for batch in DataLoader(Prepared(400, 0.001), batch_size=4):
        train_on(batch)
        torch.save({}, "checkpoint.pt")
"""
)
"""A step is 4 ms of loading and 1 ms or so of everything else; with a file `slow` beside it, 2 ms more."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script lies, in no repository."""
    made = tmp_path / "pets"
    made.mkdir()
    (made / "train.py").write_text(TRAIN)
    return made


def doctor(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bottleneck_doctor", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
    )


def spread(baseline: Stored, times: int) -> Stored:
    """The same draws as if they had been made on several days, which differ by a percent or less."""
    takes = []
    for day in range(times):
        factor = 1 + 0.004 * ((7 * day + 3) % 5 - 2)

        def earlier(text: str, day: int = day) -> str:
            return (stored_baseline.moment(text) - timedelta(days=day)).isoformat()

        for take in baseline.takes:
            draws = [
                replace(each, taken=earlier(each.taken), steps=[step * factor for step in each.steps])
                for each in take.draws
            ]
            takes.append(replace(take, taken=earlier(take.taken), draws=draws))
    return replace(baseline, takes=takes)


def test_a_baseline_is_made_and_knows_its_machine(folder: Path) -> None:
    done = doctor("baseline", "--sessions", "1", "train.py", cwd=folder)
    assert done.returncode == Exit.DONE, done.stderr
    assert "baseline.json holds 1 process, measured at 1 time" in done.stdout
    made = stored_baseline.read(folder / "baseline.json")
    (draw,) = made.draws
    assert all(0.004 < step < 1 for step in draw.steps)
    assert {"data_wait", "host_memory", "phase_data_wait"} <= draw.figures.keys()
    assert made.steady
    assert made.calibrations[0].compute_seconds is not None
    assert sorted(path.name for path in folder.iterdir()) == ["baseline.json", "train.py"]
    other = replace(made, machine=replace(made.machine, usable_cpus=made.machine.usable_cpus + 1))
    (folder / "other.json").write_bytes(stored_baseline.to_json(other))
    refused = doctor("check", "--baseline", "other.json", "train.py", cwd=folder)
    assert refused.returncode == Exit.USAGE, refused.stdout
    assert "[different-machine]" in refused.stderr
    assert f"cores that may be used: {other.machine.usable_cpus} there" in refused.stderr


@pytest.mark.slow
def test_a_slower_head_is_found_against_stored_times(folder: Path) -> None:
    assert doctor("baseline", "--sessions", "3", "train.py", cwd=folder).returncode == Exit.DONE
    made = stored_baseline.read(folder / "baseline.json")
    (folder / "baseline.json").write_bytes(stored_baseline.to_json(spread(made, 6)))
    # Whoever else uses this machine may make it look like another.
    options = ("check", "--baseline", "baseline.json", "--allow-different-machine", "--json", "out.json")
    same = doctor(*options, "--threshold", "20%", "train.py", cwd=folder)
    assert same.returncode == Exit.DONE, same.stdout + same.stderr
    found = from_json((folder / "out.json").read_bytes(), source="out.json")
    assert found.status in ("passed", "cannot_tell")
    assert found.stored is not None
    assert len(found.stored.taken) == 6
    (folder / "slow").write_text("")
    slower = doctor(*options, "train.py", cwd=folder)
    assert slower.returncode == Exit.REGRESSION, slower.stdout + slower.stderr
    found = from_json((folder / "out.json").read_bytes(), source="out.json")
    step = found.metrics[0]
    assert step.change is not None
    assert 0.2 < step.change < 1.5
    assert found.culprits[0].name == "data_wait"
    assert "against the baseline baseline.json of" in " ".join(slower.stdout.split())
    assert json.loads((folder / "out.json").read_text())["processes"]


@pytest.mark.slow(together=True)
def test_a_script_that_fails_makes_no_baseline(folder: Path) -> None:
    (folder / "train.py").write_text("import torch\nraise RuntimeError('no such rows')\n")
    done = doctor("baseline", "train.py", cwd=folder)
    assert done.returncode == Exit.ENTRYPOINT_FAILED
    assert "[entrypoint-failed]" in done.stderr
    assert "no such rows" in done.stderr
    assert not (folder / "baseline.json").exists()
