"""`make test` runs three parts of the tests; each may be empty, but not all of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
echo "$*" >>"{calls}"
case "$*" in
    *"not sleeping"*) exit {together} ;;
    *"sleeping and"*) exit {sleeping} ;;
    *"-m alone"*) exit {alone} ;;
esac
exit 99
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("together", "sleeping", "alone", "passes", "runs"),
    [
        (0, 0, 0, True, 3),
        (5, 0, 0, True, 3),
        (0, 5, 5, True, 3),
        (5, 5, 0, True, 3),
        (5, 5, 5, False, 3),
        (5, 5, 1, False, 3),
        (0, 0, 1, False, 3),
        (0, 1, 0, False, 2),
        (1, 0, 0, False, 1),
        (2, 0, 0, False, 1),
    ],
)
def test_an_empty_selection_fails(
    tmp_path: Path, together: int, sleeping: int, alone: int, passes: bool, runs: int
) -> None:
    """`together`, `sleeping`, `alone`: how pytest ends in each part. 5: it found no test."""
    calls = tmp_path / "calls"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(PYTHON.format(calls=calls, together=together, sleeping=sleeping, alone=alone))
    python.chmod(0o755)
    (tmp_path / ".installed-dev").touch()
    done = subprocess.run(
        ["make", "--no-print-directory", "test", f"VENV={tmp_path}", "PYTEST_ARGS=-k nothing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    assert ("PYTEST_ARGS selects no test: -k nothing" in done.stderr) == ((together, sleeping, alone) == (5, 5, 5))
    assert len(calls.read_text().splitlines()) == runs
