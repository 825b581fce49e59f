"""`.ci/slow` goes on after a part that fails, and names it at its end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MINUTES = 80
PYTHON = """#!/bin/sh
echo "$SLOW_TESTS $*" >>"{calls}"
case "$*" in {fails}) exit 3 ;; esac
"""


def run(folder: Path, *, fails: str, pythons: tuple[str, ...] = ()) -> tuple[subprocess.CompletedProcess[str], str]:
    """The script in a folder where each of its commands is made up; those whose words match `fails` end with 3."""
    calls = folder / "calls"
    programs = folder / "bin"
    for path in (folder / ".ci", folder / ".venv" / "bin", programs):
        path.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "slow", folder / ".ci" / "slow")
    stand_in = PYTHON.format(calls=calls, fails=fails)
    absent = [name for name in ("python3.10", "python3.14") if name not in pythons]
    for path in (folder / ".venv" / "bin" / "python", folder / ".venv" / "bin" / "nox", programs / "make"):
        path.write_text(stand_in)
        path.chmod(0o755)
    for name in (*pythons, *absent):
        (programs / name).write_text("#!/bin/sh\nexit " + ("127" if name in absent else "0"))
        (programs / name).chmod(0o755)
    found_in = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "SLOW_TESTS"}
    done = subprocess.run(
        [str(folder / ".ci" / "slow")],
        env={**environment, "PATH": found_in},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, calls.read_text()


def test_every_part_runs_and_passes(tmp_path: Path) -> None:
    done, calls = run(tmp_path, fails="nothing", pythons=("python3.10", "python3.14"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 -m pytest -n 2 --dist worksteal -m slow and not alone" in calls
    assert "1 -m pytest -m slow and alone" in calls
    assert "1 -m pytest tests/truth" in calls
    assert "benchmarks/planted.py --one-each" in calls
    assert "-s tests-3.10(torch2.4)" in calls
    assert "-s tests-3.14(torch-newest)" in calls
    assert "left out" not in done.stdout
    assert len(re.findall(r"^== .*: passed, \d+ s$", done.stdout, re.MULTILINE)) == 7


@pytest.mark.parametrize(
    ("fails", "named"),
    [
        ("*slow?and?alone*", ["slow tests, alone"]),
        ("*planted.py*one-each*", ["planted programs"]),
        ("*slow?and*|*truth*", ["slow tests, two at a time", "slow tests, alone", "truth"]),
    ],
)
def test_a_part_that_fails_stops_no_other_and_is_named(tmp_path: Path, fails: str, named: list[str]) -> None:
    done, calls = run(tmp_path, fails=fails)
    assert done.returncode == 1
    assert len(calls.splitlines()) == 6, "what is installed, and five parts"
    assert re.findall("^FAILED: (.*)$", done.stdout, re.MULTILINE) == named
    assert "left out: tests-3.10(torch2.4) (there is no python3.10)" in done.stdout


def test_its_parts_together_are_given_no_more_than_it_may_take() -> None:
    text = (ROOT / ".ci" / "slow").read_text()
    limits = [int(number) for number in re.findall(r'^part "[^"]+" (\d+) ', text, re.MULTILINE)]
    whole = re.search(r"^LIMIT=(\d+)", text, re.MULTILINE)
    assert whole is not None
    assert len(limits) == 5
    assert sum(limits) <= int(whole[1]) <= MINUTES * 60 - 60
