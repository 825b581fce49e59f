"""A network whose tensors are smaller in bfloat16: what windows find in memory, and what the changed program needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from tests.process.driver import write

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="glibc"),
]

CONVOLUTIONS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
layers = (nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
model = nn.Sequential(*layers, nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(6400, 1, 28, 28), torch.randint(10, (6400,)))
for epoch in range(1000):
    for images, labels in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
"""


def faults(result: Result, *, autocast: bool) -> float:
    """Pages a step, in the middle of all windows as written or with autocast."""
    told = [
        each.around.faults * each.seconds / each.steps
        for each in result.windows
        if each.status == "ok" and each.mode == "timed" and ("autocast" in each.setting) == autocast
        if each.around is not None and each.around.faults is not None
    ]
    return median(told)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_variables_that_keep_memory_belong_to_autocast(tmp_path: Path) -> None:
    write(tmp_path, CONVOLUTIONS)
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--only", "amp-bf16", "--no-explain", "--confirm"]
    command += ["--budget", "50s", "-o", "out", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == Exit.DONE, done.stderr
    result = from_json((tmp_path / "out" / "report.json").read_bytes(), source="report.json")
    written, under = faults(result, autocast=False), faults(result, autocast=True)
    (fix,) = (fix for fix in result.fixes if fix.id == "amp-bf16")
    assert written > 1000
    if fix.status == "faster" and under < written / 3:
        # This processor computes quickly in bfloat16, and glibc has kept what float32 needed.
        assert fix.setting == {"autocast": "bfloat16", "allocator": "glibc-keeps"}
        assert fix.change is not None
        assert "MALLOC_TRIM_THRESHOLD_" in fix.change.note
        assert result.confirmation is not None
        assert result.confirmation.outcome == "agrees", result.confirmation.sentence
