"""What only a CUDA device can show: pinned batches, float16 with scaling, synchronised windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.driver import Guest, Setting

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.edits.copied_ahead import copied_ahead_change
from bottleneck_doctor.gate.baseline import machine
from bottleneck_doctor.gate.baseline.fingerprint import differences
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.session import Command


def _has_cuda() -> bool:
    # Asked in a process of its own: the test process itself must not hold a CUDA context.
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not _has_cuda(), reason="there is no CUDA device")

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    data = TensorDataset(torch.randn(4096, 3, 64, 64), torch.randint(0, 10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(10000):
        for inputs, labels in loader:
            inputs, labels = inputs.to("cuda"), labels.to("cuda")
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_knobs_of_the_device_take_effect(script: Path) -> None:
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        found = guest.found()
        assert found.device.startswith("cuda")
        settings: tuple[Setting, ...] = (
            {"pin_memory": True},
            {"num_workers": 2, "pin_memory": True},
            {"autocast": "float16"},
            {"autocast": "bfloat16"},
            {"replay": True},
            {"float32_precision": "high", "cudnn_allow_tf32": True},
            {"cudnn_benchmark": True},
            {"channels_last": True},
            {"channels_last": True, "autocast": "float16"},
        )
        for setting in settings:
            guest.grant(setting, lead_in=8, steps=12)
            done = guest.event()
            assert isinstance(done, messages.WindowDone)
            assert (setting, done.status, done.reason) == (setting, "ok", "")
            assert done.seconds > 0
    finally:
        guest.session.stop()


def test_transforms_are_done_on_the_device(tmp_path: Path) -> None:
    script = tmp_path / "pictures.py"
    loaded = """    chain = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.2,) * 3)])
    data = Pictures(chain)
"""
    pictures = """
import numpy
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms


class Pictures(Dataset):
    def __init__(self, transform):
        pixels = numpy.random.default_rng(0).integers(0, 256, (512, 64, 64, 3), dtype=numpy.uint8)
        self.pictures, self.transform = [Image.fromarray(each) for each in pixels], transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), index % 10


def main():
"""
    given = "    data = TensorDataset(torch.randn(4096, 3, 64, 64), torch.randint(0, 10, (4096,)))\n"
    script.write_text(SCRIPT.replace("def main():\n", pictures).replace(given, loaded))
    guest = Guest(Command((sys.executable, str(script)), tmp_path))
    try:
        assert guest.found().facts["batched_transforms"]["obstacle"] == ""
        settings: tuple[Setting, ...] = ({"batched_transforms": True}, {"batched_transforms": "device"})
        for setting in settings:
            guest.grant(setting, lead_in=4, steps=8)
            done = guest.event()
            assert isinstance(done, messages.WindowDone)
            assert (done.status, done.reason, done.effect) == ("ok", "", {"batched_transforms": True})
    finally:
        guest.session.stop()


def test_what_is_on_already_is_taken_back(script: Path) -> None:
    compiled = SCRIPT.replace("shuffle=True", "shuffle=True, pin_memory=True")
    script.write_text(compiled.replace("    optimizer =", "    model = torch.compile(model)\n    optimizer =", 1))
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        found = guest.found()
        assert found.pin_memory
        assert found.obstacles["uncompiled"] == ""
        settings: tuple[Setting, ...] = ({"pin_memory": False}, {"uncompiled": True}, {})
        for setting in settings:
            done = guest.window(setting, lead_in=8, steps=12)
            assert (setting, done.status, done.reason) == (setting, "ok", "")
    finally:
        guest.close()


def test_a_model_in_double_precision_is_faster_in_single(script: Path) -> None:
    double = SCRIPT.replace(").cuda()", ").double().cuda()").replace("64, 64), torch", "64, 64).double(), torch")
    script.write_text(double)
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        assert guest.found().obstacles["single_precision"] == ""
        seconds = []
        for setting in ({}, {"single_precision": True}, {}):
            done = guest.window(setting, lead_in=8, steps=24)
            assert (setting, done.status, done.reason) == (setting, "ok", "")
            assert done.effect == dict.fromkeys(setting, True)
            seconds.append(done.seconds / done.steps)
        assert seconds[1] < min(seconds[0], seconds[2])
    finally:
        guest.close()


def test_pinned_batches_are_copied_without_waiting(script: Path) -> None:
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        found = guest.found()
        line = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if ".to(" in text)
        assert found.facts["non_blocking"] == {"calls": [["to", str(script), line]]}
        both: Setting = {"pin_memory": True, "non_blocking": True}
        for setting in (both, {"pin_memory": True}, both):
            done = guest.window(setting, lead_in=4, steps=12)
            assert (setting, done.status, done.reason) == (setting, "ok", "")
            assert done.effect == dict.fromkeys(setting, True)
    finally:
        guest.close()


def test_a_model_is_compiled_with_cuda_graphs_and_without(script: Path) -> None:
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        assert guest.found().obstacles["compiled"] == ""
        settings: tuple[Setting, ...] = ({"compiled": True}, {"compiled": "reduce-overhead"}, {}, {"compiled": True})
        for setting in settings:
            done = guest.window(setting, lead_in=8, steps=12)
            assert (setting, done.status, done.reason) == (setting, "ok", "")
            assert done.effect == dict.fromkeys(setting, True)
    finally:
        guest.close()


def test_an_examination_on_the_device(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--quiet", "--budget", "90s", "-o", str(tmp_path)]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, env=dict(os.environ), timeout=240)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    result = from_json((tmp_path / "report.json").read_bytes(), source="report.json")
    assert result.baseline is not None
    assert result.baseline.device.startswith("cuda")
    assert result.environment.devices
    statuses = {fix.id: fix.status for fix in result.fixes}
    for fix in ("pinned-memory", "amp-bf16", "amp-fp16"):
        assert statuses[fix] not in ("not_applicable", "failed"), (fix, result.fixes)


def test_windows_tell_the_memory_of_the_device(script: Path) -> None:
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        guest.found()
        first, second = (guest.window({}, steps=20) for _ in range(2))
        assert first.device_bytes is not None
        assert first.device_reserved_bytes is not None
        # A batch of activations at least: 64 images, 64 channels, 64 x 64, 4 bytes.
        assert 64**4 * 4 < first.device_bytes <= first.device_reserved_bytes
        assert second.device_bytes is not None
        assert second.device_bytes >= first.device_bytes
    finally:
        guest.close()


def test_the_machine_is_described_with_its_device(tmp_path: Path) -> None:
    found = machine.describe(sys.executable, tmp_path, dict(os.environ))
    assert found.fingerprint.devices
    assert found.fingerprint.driver
    measured = found.calibration
    for figure in (
        measured.device_compute_seconds, measured.device_bytes_per_second, measured.transfer_bytes_per_second
    ):  # fmt: skip
        assert figure is not None
    again = machine.describe(sys.executable, tmp_path, dict(os.environ))
    assert not differences(found.fingerprint, again.fingerprint)


ATTENDING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.MultiheadAttention(64, 4, batch_first=True)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = x + self.first(x, x, x)[0]
        q = k = v = x.view(16, 512, 4, 16).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / 4).softmax(-1)
        return self.head((weights @ v).transpose(1, 2).reshape(16, 512, 64).mean(1))

def main():
    data = TensorDataset(torch.randn(1024, 512, 64), torch.randint(0, 10, (1024,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(10000):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("autocast", [{}, {"autocast": "bfloat16"}])
@pytest.mark.parametrize("setting", [{"attention_weights": False}, {"fused_attention": True}])
def test_attention_is_fused_on_the_device(script: Path, setting: Setting, autocast: Setting) -> None:
    script.write_text(ATTENDING)
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        facts = guest.found().facts
        assert facts["attention_weights"]["calls"]
        assert facts["fused_attention"]["places"]
        done = guest.window({**setting, **autocast}, steps=20)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys((*setting, *autocast), True)
        assert guest.window({}, steps=20).status == "ok"
    finally:
        guest.close()


def test_numbers_that_are_only_recorded_are_not_waited_for(script: Path) -> None:
    recorded = "optimizer.step()\n            losses.append(loss.item())\n"
    script.write_text(
        SCRIPT.replace("optimizer.step()\n", recorded).replace("def main():\n", "losses = []\n\ndef main():\n")
    )
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        ((_, line),) = guest.found().facts["late_values"]["lines"]
        assert script.read_text().splitlines()[line - 1].strip() == "losses.append(loss.item())"
        late = guest.window({"late_values": True}, steps=20)
        assert (late.status, late.reason, late.effect) == ("ok", "", {"late_values": True})
        assert guest.window({}, steps=20).status == "ok"
    finally:
        guest.close()


AHEAD: Setting = {"pin_memory": True, "device_prefetch": True}
COUNTED = SCRIPT.replace("range(10000)", "range(2)").replace("shuffle=True", "num_workers=1")


def test_batches_are_copied_ahead(script: Path) -> None:
    script.write_text(COUNTED.replace("range(2)", "range(10000)"))
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        guest.found()
        for options in ({"steps": 40}, {"steps": 0, "epochs": 1}):
            done = guest.window(AHEAD, lead_in=1, **options)
            assert (done.status, done.reason, done.effect) == ("ok", "", dict.fromkeys(AHEAD, True))
            assert guest.window({}, steps=20).status == "ok"
    finally:
        guest.close()


def test_a_program_that_copies_ahead_learns_the_same(script: Path) -> None:
    told = "            print(loss.item())\n"
    seeded = COUNTED.replace("def main():\n", "def main():\n    torch.manual_seed(0)\n")
    source = seeded.replace("optimizer.step()\n", f"optimizer.step()\n{told}")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "cross_entropy(model" in text)
    change = copied_ahead_change(source, line)
    assert change is not None
    losses = []
    for text in (source, change.edited.replace("num_workers=1", "num_workers=1, pin_memory=True")):
        script.write_text(text)
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        losses.append([float(each) for each in done.stdout.split()])
    assert len(losses[0]) == 128
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)


def test_an_emptied_cache_is_seen_and_left_out(script: Path) -> None:
    script.write_text(SCRIPT.replace("optimizer.step()\n", "optimizer.step()\n            torch.cuda.empty_cache()\n"))
    guest = Guest(Command((sys.executable, str(script)), script.parent))
    try:
        ((name, _, line, _),) = guest.found().facts["cleanup_calls"]["lines"]
        assert name == "torch.cuda.empty_cache"
        assert script.read_text().splitlines()[line - 1].strip() == "torch.cuda.empty_cache()"
        as_written, without, again = (guest.window(setting, steps=20) for setting in ({}, {"cleanup_calls": False}, {}))
        assert (without.status, without.reason, without.effect) == ("ok", "", {"cleanup_calls": True})
        assert without.seconds < min(as_written.seconds, again.seconds)
    finally:
        guest.close()
