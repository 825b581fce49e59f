"""The edit of the call that makes fastai's DataLoaders, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.runtime.wire.messages import Site

HEAD = "from fastai.vision.all import *\n"
FITTED = "learn = vision_learner(dls, resnet18)\nlearn.fine_tune(8)\n"


def changes(folder: Path, source: str, setting: Setting, device: str = "cpu") -> list[Change]:
    script = folder / "train.py"
    script.write_text(source)
    site = Site(file=str(script), line=source.count("\n"))
    found = replace(
        FOUND, device=device, loader_site=None, loader_library="fastai", forward_site=site, backward_site=None
    )
    return changes_for(setting, found, [str(script)])


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("ImageDataLoaders.from_folder(path, bs=16)", "ImageDataLoaders.from_folder(path, bs=16, num_workers=4)"),
        ("block.dataloaders(path, num_workers=2)", "block.dataloaders(path, num_workers=4)"),
        ("DataLoaders.from_dsets(a, b, **more)", 'DataLoaders.from_dsets(a, b, **{**more, "num_workers": 4})'),
    ],
)
def test_the_call_that_makes_them_gets_the_argument(call: str, after: str, tmp_path: Path) -> None:
    (only,) = changes(tmp_path, f"{HEAD}dls = {call}\n{FITTED}", {"num_workers": 4})
    assert f"-dls = {call}\n+dls = {after}\n" in only.diff
    assert not only.unfinished


def test_workers_are_taken_away_with_what_needs_them(tmp_path: Path) -> None:
    source = f"{HEAD}dls = block.dataloaders(path, num_workers=2, persistent_workers=True)\n{FITTED}"
    (only,) = changes(tmp_path, source, {"num_workers": 0})
    assert "+dls = block.dataloaders(path, num_workers=0)\n" in only.diff


@pytest.mark.parametrize(
    ("source", "setting"),
    [
        (f"{HEAD}dls = made()\n{FITTED}", {"num_workers": 4}),
        (f"dls = block.dataloaders(path)\n{FITTED}", {"num_workers": 4}),
        (f"{HEAD}dls = block.dataloaders(path)\n{FITTED}", {"num_workers": 4, "prefetch_factor": 4}),
    ],
)
def test_it_is_left_to_the_user_where_that_is_not_certain(source: str, setting: Setting, tmp_path: Path) -> None:
    (only,) = changes(tmp_path, source, setting)
    assert only.diff == ""
    assert only.note.startswith("Pass `num_workers=4")
    assert "where fastai's DataLoaders are made, as in `ImageDataLoaders.from_folder(...)`." in only.note


@pytest.mark.parametrize(
    ("device", "note"),
    [
        ("cuda:0", "Call `learn.to_bf16()` before the Learner is fitted."),
        ("cpu", "In fastai, a callback does that in `before_batch` and `after_loss`."),
    ],
)
def test_autocast_is_told_in_its_own_words(device: str, note: str, tmp_path: Path) -> None:
    (only,) = changes(tmp_path, f"{HEAD}{FITTED}", {"autocast": "bfloat16"}, device)
    assert only.note.endswith(note)
