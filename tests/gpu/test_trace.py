"""What torch.profiler tells of a real device: kernels, Tensor Cores, copies, and why it is idle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.driver import Guest

from bottleneck_doctor.documents.report import DeviceProfile
from bottleneck_doctor.profiling import device
from bottleneck_doctor.profiling.device import device_profile
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.session import Command


def _has_cuda() -> bool:
    # Asked in a process of its own: the test process itself must not hold a CUDA context.
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not _has_cuda(), reason="there is no CUDA device")]

STEPS = 6
SCRIPT = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, index):
        return torch.ones(1024)


class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.ones(1024)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 1024)

    def forward(self, rows):
        rows = self.layer(rows)
        for _ in range(400):
            rows = rows + 1
        return rows


class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 1024)

    def forward(self, rows):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=MIXED):
            big = self.layer.weight.repeat(8, 8)
            for _ in range(10):
                big = big @ big * 1e-4
            return self.layer(rows) + big.float().mean()


MIXED = True
loader = DataLoader(DATASET(), batch_size=16)
model = MODEL().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for batch in loader:
    batch = batch.to("cuda")
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
"""


EPOCHS = "for batch in (each for _ in range(10000) for each in loader):"


def profiled(folder: Path, text: str) -> DeviceProfile:
    script, trace = folder / "train.py", folder / "trace.json.gz"
    script.write_text(text)
    guest = Guest(Command((sys.executable, str(script)), folder))
    try:
        guest.found()
        guest.session.grant(messages.Grant(1, {}, "trace", 4, STEPS, 0, {"chrome_trace": str(trace)}))
        done = guest.event(120)
        assert isinstance(done, messages.WindowDone), (done, guest.session.tail())
        assert (done.status, done.reason) == ("ok", "")
        profile = device_profile(done.detail, trace, [str(trace)])
        print(profile)
        assert profile.kernels
        return profile
    finally:
        guest.close()


def script(dataset: str, model: str) -> str:
    return SCRIPT.replace("DATASET", dataset).replace("MODEL", model)


def test_a_device_that_waits_for_data(tmp_path: Path) -> None:
    profile = profiled(tmp_path, script("Slow", "Deep"))
    assert profile.idle_share is not None
    assert profile.idle_share > 0.5
    assert profile.idle_cause == device.WAITING_FOR_DATA
    assert profile.pageable_copies == STEPS


def test_a_device_that_waits_for_launches(tmp_path: Path) -> None:
    profile = profiled(tmp_path, script("Rows", "Deep"))
    assert profile.idle_cause == device.LAUNCHING
    assert profile.kernels_per_step is not None
    assert profile.kernels_per_step > 400
    assert profile.kernel_mean_us is not None
    assert profile.kernel_mean_us < 20


def test_epochs_that_are_shorter_than_a_trace(tmp_path: Path) -> None:
    """A second profiler in the process spoils what the first one has not told yet."""
    epochs = script("Rows", "Large").replace("return 100000", "return 64").replace("for batch in loader:", EPOCHS)
    profile = profiled(tmp_path, epochs)
    assert profile.idle_share is not None
    assert profile.steps in (3, 4)


@pytest.mark.parametrize("mixed", [True, False])
def test_a_device_at_work(tmp_path: Path, mixed: bool) -> None:
    profile = profiled(tmp_path, script("Rows", "Large").replace("MIXED = True", f"MIXED = {mixed}"))
    assert profile.utilization is not None
    assert profile.utilization > 0.8
    assert profile.sm_efficiency is not None
    assert 0.5 < profile.sm_efficiency <= 1
    assert profile.occupancy is not None
    assert 0 < profile.occupancy <= 1
    assert profile.tensor_core_share is not None
    assert profile.tensor_core_eligible_share is not None
    assert profile.tensor_core_eligible_share > 0.5
    # Without TF32, which is off unless asked for, single precision leaves Tensor Cores alone.
    assert (profile.tensor_core_share > 0.5) == mixed
