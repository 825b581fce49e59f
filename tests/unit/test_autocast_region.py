"""The user's own autocast, switched on where it is off, and wherever that is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Change
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.runtime.wire.messages import Found, Site

SCRIPT = """\
import argparse
import torch
def train(amp=False):
    for x in loader:
        with torch.autocast(device.type, enabled=amp):
            loss = model(x).sum()
        loss.backward()
parser = argparse.ArgumentParser()
parser.add_argument('--amp', action='store_true', default=False)
args = parser.parse_args()
train(amp=args.amp)
"""


def edit(folder: Path, script: str, *words: str, device: str = "cpu", dtype: str = "bfloat16") -> tuple[Change, str]:
    """The first change, and what becomes of the script."""
    path = folder / "train.py"
    path.write_text(script)
    lines = [number for number, line in enumerate(script.split("\n"), 1) if "model(x)" in line or "backward" in line]
    forward, backward = (Site(file=str(path), line=line) for line in lines)
    found: Found = replace(FOUND, device=device, loader_site=None, forward_site=forward, backward_site=backward)
    entrypoint = [str(path), *words]
    changes = changes_for({"autocast": dtype}, found, entrypoint)
    files = edited_files({"autocast": dtype}, found, entrypoint)
    return changes[0], files[str(path)][1] if files else script


def test_the_option_that_switches_it_gets_another_default(tmp_path: Path) -> None:
    change, after = edit(tmp_path, SCRIPT)
    assert after == SCRIPT.replace("default=False)", "default=True)")
    assert "`--amp` on the command line does the same." in change.note
    assert "of its own" not in change.note, "the option is named already"


def test_a_literal_is_changed_in_place(tmp_path: Path) -> None:
    source = SCRIPT.replace("enabled=amp", "enabled=False, dtype=torch.bfloat16")
    _, after = edit(tmp_path, source)
    assert after == source.replace("enabled=False", "enabled=True")


@pytest.mark.parametrize(
    ("call", "device", "dtype"),
    [
        ("torch.autocast(device.type, dtype=torch.float16, enabled=amp)", "cpu", "bfloat16"),
        ("torch.autocast('cuda', enabled=amp)", "cuda:0", "bfloat16"),
        ("torch.amp.autocast('cpu', torch.float16, amp)", "cpu", "bfloat16"),
    ],
)
def test_what_is_not_certain_is_said(tmp_path: Path, call: str, device: str, dtype: str) -> None:
    source = SCRIPT.replace("torch.autocast(device.type, enabled=amp)", call)
    change, after = edit(tmp_path, source, device=device, dtype=dtype)
    assert after == source
    assert change.line == 5
    assert f"This autocast is off where the model is called: switch it on, with `dtype=torch.{dtype}`." in change.note


@pytest.mark.parametrize(
    "call",
    [
        "torch.cuda.amp.autocast(enabled=amp)",
        "torch.autocast('cuda', enabled=amp)",
        "autocast(enabled=amp)",
        "amp_of_torch.autocast(amp)",
    ],
)
def test_one_of_another_device_does_nothing_here_so_another_goes_around_it(tmp_path: Path, call: str) -> None:
    imports = "import torch\nfrom torch.cuda.amp import autocast\nfrom torch.cuda import amp as amp_of_torch"
    source = SCRIPT.replace("torch.autocast(device.type, enabled=amp)", call).replace("import torch", imports)
    _, after = edit(tmp_path, source)
    assert f"        with torch.autocast('cpu', dtype=torch.bfloat16):\n            with {call}:" in after.replace(
        '"', "'"
    )


def test_float16_needs_a_scaler_that_the_user_may_have(tmp_path: Path) -> None:
    source = SCRIPT.replace("torch.autocast(device.type, enabled=amp)", "torch.autocast('cuda', enabled=amp)")
    change, after = edit(tmp_path, source, device="cuda:0", dtype="float16")
    assert after == source
    assert "switch it on" in change.note
    scaled = source.replace("def train", "scaler = torch.amp.GradScaler(enabled=amp)\ndef train")
    _, after = edit(tmp_path, scaled, device="cuda:0", dtype="float16")
    assert after == scaled.replace("default=False)", "default=True)")


ELSEWHERE = """\
import torch
from torch.cuda.amp import autocast
def train(scaler):
    for x in loader:
        with torch.cuda.amp.autocast():
            loss = model(x).sum()
        scaler(loss)
class Scaler:
    def __call__(self, loss):
        loss.backward()
"""


@pytest.mark.parametrize(
    "call", ["torch.cuda.amp.autocast()", "autocast()", "torch.autocast('cuda')", "torch.amp.autocast('cuda', dtype=x)"]
)
def test_one_of_cuda_becomes_one_of_the_cpu_where_nothing_can_go_around_it(tmp_path: Path, call: str) -> None:
    source = ELSEWHERE.replace("torch.cuda.amp.autocast()", call)
    change, after = edit(tmp_path, source)
    made = "torch.autocast('cpu', dtype=torch.bfloat16)"
    assert after.replace('"', "'") == source.replace(f"with {call}:", f"with {made}:").replace('"', "'")
    assert change.line == 5
    assert "does nothing on a CPU. On a GPU, put it back." in change.note
    assert not change.unfinished


@pytest.mark.parametrize(
    ("call", "device"),
    [
        ("torch.cuda.amp.autocast(enabled=amp)", "cpu"),
        ("torch.cuda.amp.autocast(amp)", "cpu"),
        ("torch.autocast('cuda', torch.float16, amp)", "cpu"),
        ("anything.autocast()", "cpu"),
        ("torch.cuda.amp.autocast()", "cuda:0"),
    ],
)
def test_one_that_something_else_switches_stays(tmp_path: Path, call: str, device: str) -> None:
    source = ELSEWHERE.replace("torch.cuda.amp.autocast()", call)
    _, after = edit(tmp_path, source, device=device)
    assert after == source
