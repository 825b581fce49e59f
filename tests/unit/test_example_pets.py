"""The demo's pictures: the same everywhere, and whole however often and however rudely they are made."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

EXAMPLE = Path(__file__).parents[2] / "examples" / "pets"


@pytest.fixture
def photos(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("pets_photos", EXAMPLE / "photos.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PER_CLASS", 2)
    return module


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pictures_are_the_same_every_time(photos: ModuleType, tmp_path: Path) -> None:
    photos.make_photos(tmp_path / "one")
    photos.make_photos(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    pictures = sorted((tmp_path / "one").glob("*/*.jpg"))
    assert len(pictures) == 2 * len(photos.CLASSES)
    with Image.open(pictures[0]) as picture:
        assert (picture.size, picture.mode) == ((500, 375), "RGB")


def test_what_exists_is_kept(photos: ModuleType, tmp_path: Path) -> None:
    photos.make_photos(tmp_path / "data")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.jpg")}
    photos.make_photos(tmp_path / "data")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*.jpg")} == before


def test_a_folder_of_somebody_elses_is_left_alone(photos: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").touch()
    with pytest.raises(SystemExit, match="was not made here"):
        photos.make_photos(tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "mine"]


def test_two_at_once_and_one_killed_leave_one_whole_folder(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import photos; from pathlib import Path;"
        "photos.PER_CLASS = 8; photos.make_photos(Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", script, str(EXAMPLE), str(tmp_path / "data")]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".data-*/*/*.jpg")) and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "data").exists()
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(list((tmp_path / "data").glob("*/*.jpg"))) == 48
    assert (tmp_path / "data" / "COMPLETE").exists()
