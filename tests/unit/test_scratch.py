"""Temporary folders: what a dead doctor left is removed, what a living one uses is not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import scratch

DIES = """
import os, signal, sys
from pathlib import Path
from bottleneck_doctor.protection import scratch
folder = scratch.new_folder(Path(sys.argv[1]))
(folder / "line").write_text("left behind")
print(folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_whose_owner_was_killed_goes_with_the_next(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "line").exists()
    mine = scratch.new_folder(tmp_path)
    assert not left.exists()
    assert mine.exists()


def test_folders_of_the_living_and_of_others_stay(tmp_path: Path) -> None:
    first = scratch.new_folder(tmp_path)
    unknown = tmp_path / f"{scratch.PREFIX}of-somebody"
    unknown.mkdir()
    strange = tmp_path / f"{scratch.PREFIX}strange"
    strange.mkdir()
    (strange / ".owner").write_text("no number")
    begun = tmp_path / f"{scratch.PREFIX}begun"
    begun.mkdir()
    (begun / ".owner").write_text("")  # As another process finds it that comes just then.
    second = scratch.new_folder(tmp_path)
    assert {first, unknown, strange, begun, second} <= set(tmp_path.iterdir())


def test_a_number_that_was_given_to_another_process_is_not_the_owner(tmp_path: Path) -> None:
    old = tmp_path / f"{scratch.PREFIX}old"
    old.mkdir()
    (old / ".owner").write_text(f"{os.getpid()} 12.34")
    scratch.sweep(tmp_path)
    assert not old.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".owner").write_text("999999999 1.00")
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(elsewhere)
    scratch.sweep(tmp_path)
    assert elsewhere.exists()


def test_full_disk_is_an_error_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(pid: int) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(scratch, "_name_of", full)
    with pytest.raises(DoctorError, match="No space left on device") as error:
        scratch.new_folder(tmp_path)
    assert error.value.slug == "temporary-unwritable"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process is known by the time of day of its start")
def test_folders_of_the_living_stay_when_somebody_sets_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scratch.new_folder(tmp_path)
    created = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + 3600.0)
    scratch.sweep(tmp_path)
    assert folder.exists()
