"""`benchmarks/real.py` on a program: it is examined as a user would do it, and its row is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.benchmark import load

pytestmark = pytest.mark.process

real = load("real")
PROGRAM = """
import pathlib, sys
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(512, 16), torch.randn(512, 1)), batch_size=16)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(int(sys.argv[1])):
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
"""


def run_real(*words: object) -> tuple[int, str]:
    command = [sys.executable, str(real.__file__), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=os.environ)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("how", [[], ["--terminal"]], ids=["log", "terminal"])
@pytest.mark.slow(together=True)
def test_a_program_is_examined_and_its_row_kept(tmp_path: Path, how: list[str]) -> None:
    folder = tmp_path / "prog"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    kept, reports = tmp_path / "real.json", tmp_path / "reports"
    words = ["--budget", "12s", "--no-explain", "--only", "workers", "train.py", "--", "100000"]
    _, said = run_real(folder, "--json", kept, "--reports", reports, *how, "--", *words)
    (found,) = msgspec.json.decode(kept.read_bytes())["rows"]
    assert not found["failure"], said
    assert (found["exit"], found["command"], found["files"], found["processes"]) == (0, words, "", "")
    assert found["promised"] == 12.0
    assert 0 < found["silence"] < found["seconds"]
    assert set(found["totals"]) <= {"12 s"}, "lines of a log name the total only every ten seconds"
    assert len(list(reports.glob("*/report.html"))) == 1
    assert [path.name for path in folder.iterdir() if path.name != "__pycache__"] == ["train.py"]

    _, said = run_real(folder, "--json", kept, "--note", "Read: all true.", "--", *words)
    (again,) = msgspec.json.decode(kept.read_bytes())["rows"]
    assert again == {**found, "note": "Read: all true."}, "a row that is there is not measured again"
    table = run_real("--json", kept, "--table")[1]
    assert any(f"| {word} |" in table for word in ("faster", "reason", "nothing"))


def test_a_program_that_fails_is_a_row_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "prog"
    folder.mkdir()
    (folder / "train.py").write_text("import torch\nraise SystemExit('no data here')\n")
    kept = tmp_path / "real.json"
    code, _ = run_real(folder, "--json", kept, "--", "train.py")
    (found,) = msgspec.json.decode(kept.read_bytes())["rows"]
    assert code == 1
    assert found["exit"] != 0
    assert found["failure"].startswith(f"exit code {found['exit']}. ")
    assert "no data here" in found["failure"]
    assert "| no report |" in run_real("--json", kept, "--table")[1]
