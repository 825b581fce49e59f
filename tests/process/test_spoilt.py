"""A real network that learns nothing in bfloat16, as `doctor run` examines it, and the same one around zero."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.errors import Exit

pytestmark = pytest.mark.process

WORKLOAD = Path(__file__).parents[2] / "benchmarks" / "workloads" / "far_from_zero.py"


@pytest.mark.slow(together=True)
@pytest.mark.parametrize(("centre", "spoilt"), [("1013.25", True), ("0", False)])
def test_a_network_that_learns_nothing_in_bfloat16_is_not_told_to_use_it(
    tmp_path: Path, centre: str, spoilt: bool
) -> None:
    command = [sys.executable, "-m", "bottleneck_doctor", "run", "--only", "amp-bf16", "--no-explain", "--no-confirm"]
    command += ["--budget", "40s", "-o", "out", str(WORKLOAD), "--", "--centre", centre]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == Exit.DONE, done.stderr
    result = from_json((tmp_path / "out" / "report.json").read_bytes(), source="report.json")
    (fix,) = (fix for fix in result.fixes if fix.id == "amp-bf16")
    assert (fix.status == "failed") == spoilt, (fix.status, fix.reason)
    assert ("the loss was" in fix.reason) == spoilt
    assert ("autocast" in result.verdict.sentence) <= (not spoilt)
