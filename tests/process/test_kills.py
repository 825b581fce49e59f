"""A process of an examination is killed at a random moment, and nothing is left or changed: `benchmarks/kills.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

KILLS = Path(__file__).parents[2] / "benchmarks" / "kills.py"


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("seed", [7])
def test_nothing_is_left_by_the_killed(seed: int) -> None:
    command = [sys.executable, str(KILLS), "--kills", "5", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing left, nothing changed: 5 of 5" in done.stdout
