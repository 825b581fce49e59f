"""Knobs that take samples to see whether they apply: what one process told is enough for the next."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from bottleneck_doctor.runtime.knobs import (
    batched_transforms,
    cached_inputs,
    cached_samples,
    facts,
    kinds,
    reduced_decoding,
    shape,
    single_threaded,
)
from bottleneck_doctor.runtime.loop.steps import Steps

LAST = [transforms.Resize((60, 80)), transforms.ToTensor(), transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))]
RECALLED = {
    cached_samples.NAME: True,
    cached_inputs.NAME: True,
    reduced_decoding.NAME: True,
    batched_transforms.NAME: True,
    single_threaded.NAME: "opencv",
}
"""Each with the value of a window."""


class Camera(Dataset[Any]):
    """Pictures of 640 by 480, flipped at random but for those whose samples are to be kept. `taken`: which ones."""

    def __init__(self, folder: Path, *, flips: bool) -> None:
        self.files = sorted(folder.iterdir())
        self.transform = transforms.Compose([*([transforms.RandomHorizontalFlip()] if flips else []), *LAST])
        self.taken: list[int] = []

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        self.taken.append(index)
        return self.transform(Image.open(self.files[index]).convert("RGB")), index


def forget() -> None:
    cached_samples._source.clear()
    cached_samples._prepared.clear()
    cached_inputs._source.clear()
    cached_inputs._kept.clear()
    reduced_decoding._found.clear()
    batched_transforms._places.clear()


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    yield
    forget()


def loader_of(folder: Path, name: str) -> Any:
    if not folder.exists():
        folder.mkdir()
        for number in range(6):
            coarse = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
            picture = Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC)
            picture.save(folder / f"{number}.jpg")
    return DataLoader(Camera(folder, flips=name != cached_samples.NAME), batch_size=2, num_workers=1)


def has_effect(loader: Any, name: str) -> bool:
    """Whether a window's loader is changed as one that was looked at is."""
    shadow = copy.copy(loader)
    shape(shadow, {name: RECALLED[name]})
    return any(vars(shadow)[each] is not value for each, value in vars(loader).items())


@pytest.mark.parametrize("name", RECALLED)
def test_no_samples_are_taken_where_an_earlier_process_has_told(tmp_path: Path, name: str) -> None:
    first = loader_of(tmp_path / "pictures", name)
    told = facts(Steps(), "cpu", first)[name]
    assert told["obstacle"] == ""
    forget()
    again = loader_of(tmp_path / "pictures", name)
    assert facts(Steps(), "cpu", again, {name: told})[name] == told
    assert again.dataset.taken == []
    assert has_effect(again, name)


@pytest.mark.parametrize("name", RECALLED)
@pytest.mark.parametrize("told", [None, {"obstacle": "it was not seen"}, ["another", "release"]])
def test_what_was_not_told_is_looked_at(tmp_path: Path, name: str, told: Any) -> None:
    loader = loader_of(tmp_path / "pictures", name)
    assert facts(Steps(), "cpu", loader, {name: told})[name]["obstacle"] == ""
    assert loader.dataset.taken
    assert has_effect(loader, name)


@pytest.mark.parametrize("name", sorted(set(RECALLED) - {cached_samples.NAME, single_threaded.NAME}))
def test_what_does_not_fit_this_loader_is_looked_at(tmp_path: Path, name: str) -> None:
    """As where another release told it, or a process has another data set."""
    loader: Any = DataLoader([1, 2, 3])  # type: ignore[arg-type]
    seen = facts(Steps(), "cpu", loader, {name: {"obstacle": ""}})
    assert seen[name]["obstacle"] != ""
    assert not has_effect(loader, name)


def test_nothing_is_recalled_of_knobs_that_are_not_asked_for(tmp_path: Path) -> None:
    loader = loader_of(tmp_path / "pictures", cached_inputs.NAME)
    seen = facts(Steps(), "cpu", loader, {})
    assert not {name for name in seen if kinds()[name].takes_samples}
    assert loader.dataset.taken == []
