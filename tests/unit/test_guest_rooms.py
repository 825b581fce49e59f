"""The rooms of the guest: all of it is told from the user's code by its folder, and it enters without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import bottleneck_doctor.runtime
from bottleneck_doctor.runtime.process.subprocess_entry import ENTRY
from bottleneck_doctor.runtime.process.user_code import is_users_file

RUNTIME = Path(bottleneck_doctor.runtime.__file__).parent


def test_no_file_of_the_guest_is_the_users() -> None:
    files = [str(path) for path in RUNTIME.rglob("*.py")]
    assert len({Path(file).parent for file in files}) > 5
    assert [file for file in files if is_users_file(file)] == []
    assert is_users_file("/home/ada/train.py")


def test_the_entry_folder_is_where_the_guest_says_it_is() -> None:
    assert (Path(ENTRY) / "sitecustomize.py").is_file()


def test_the_guest_enters_without_torch() -> None:
    """Every Python of an examined command passes here, and most of them never import torch."""
    program = "import sys, bottleneck_doctor.runtime.bootstrap; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
