"""Somebody sets the clock while the doctor runs: nothing that is measured, planned or kept depends on it."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, write
from tests.quiet import lasting

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.errors import Exit

pytestmark = pytest.mark.process

JUMPS = ("+5h", "-30h", "+0", "-1h", "+9d")


def library() -> Path | None:
    """libfaketime, of PyPI's package or the system's."""
    spec = importlib.util.find_spec("libfaketime")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec is not None else []
    found = [path for folder in folders for path in sorted(folder.rglob("libfaketime*.so*"))]
    found += [path for folder in ("/usr/lib", "/usr/lib64") for path in Path(folder).glob("**/libfaketimeMT.so.1")]
    return found[0] if found else None


@pytest.fixture
def set_clock(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables under which a process reads the time of day from a file, as an offset; time that goes on is left."""
    found = library()
    if found is None:
        pytest.skip("libfaketime is not installed")
    write(tmp_path, "+0\n", "clock")
    yield {
        "LD_PRELOAD": str(found),
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    for path in Path("/dev/shm").glob("*faketime_*"):  # Its own, of processes that were killed.
        path.unlink(missing_ok=True)


JUMPING = (
    PRELUDE
    + f"""
jumps = {JUMPS}
print("start", os.path.exists("last.pt"), flush=True)
if os.path.exists("last.pt"):
    sys.exit("goes on from a checkpoint that only an examination made")
steps = 0
while True:
    for batch in DataLoader(Rows(64, 0.005), batch_size=4):
        train_on(batch)
        steps += 1
        if steps % 7 == 0:
            note("times", time.time())
            torch.save(model.state_dict(), "last.pt")
            if len(sys.argv) > 1:
                with open("clock.new", "w") as handle:
                    handle.write(jumps[steps // 7 % len(jumps)])
                os.replace("clock.new", sys.argv[1])
"""
)
"""A step loads for 20 ms."""


@pytest.mark.slow(together=True)
def test_windows_while_the_clock_is_set(guest: StartGuest, tmp_path: Path, set_clock: dict[str, str]) -> None:
    script = guest(JUMPING, str(tmp_path / "clock"), environment=set_clock)
    found = script.found()
    assert 0 < found.setup_seconds < 60
    assert all(0.015 < seconds < 1 for seconds in found.step_seconds[2:])
    for setting, step in (({}, 0.02), ({"num_workers": 2}, 0.01)):
        done = script.window(setting, lead_in=4, steps=20)
        assert (done.status, done.reason) == ("ok", "")
        assert done.seconds / done.steps in lasting(step, rel=0.3, abs=0.008)
        assert 0 <= done.wait_seconds <= done.seconds
    phases = script.window({}, mode="phases", lead_in=2, steps=20)
    assert phases.status == "ok"
    assert sum(phases.detail["phases"].values()) == pytest.approx(phases.seconds, rel=0.005)
    whole = script.window({}, lead_in=0, steps=0, epochs=1)
    assert whole.seconds / whole.steps in lasting(0.02, rel=0.3, abs=0.005)
    times = script.notes("times")
    assert max(times) - min(times) > 24 * 3600


@pytest.mark.timed
@pytest.mark.slow
def test_examination_while_the_clock_is_set(tmp_path: Path, set_clock: dict[str, str]) -> None:
    # Long epochs: starting workers anew for sixteen batches costs more than they save.
    script = write(tmp_path / "project", JUMPING.replace("Rows(64,", "Rows(1600,"))
    command = [
        sys.executable,
        "-m",
        "bottleneck_doctor",
        "run",
        "--budget",
        "25s",
        "--only",
        "workers",
        "-o",
        "../report",
    ]
    over = threading.Event()

    def jump() -> None:
        for offset in itertools.cycle(JUMPS):
            write(tmp_path, offset + "\n", "clock.new")
            os.replace(tmp_path / "clock.new", tmp_path / "clock")
            if over.wait(0.7):
                return

    jumping = threading.Thread(target=jump)
    jumping.start()
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, script.name],
            cwd=script.parent,
            env={**os.environ, **set_clock},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    finally:
        over.set()
        jumping.join()
    assert done.returncode == Exit.DONE, done.stderr
    assert time.monotonic() - began < 90  # Three times what was allowed.
    result = from_json((tmp_path / "report" / "report.json").read_bytes(), source="report.json")
    workers = next(outcome for outcome in result.fixes if outcome.id == "workers")
    assert workers.speedup is not None, "measured, though how fast they are under the library that sets clocks is open"
    assert {record.ended for record in result.method.sessions} <= {"told to end", "the time was over"}
    assert len(result.method.sessions) > 1
    assert all(0 < window.seconds < 30 for window in result.windows if window.status == "ok")
    assert sorted(path.name for path in script.parent.iterdir()) == ["train.py"]
