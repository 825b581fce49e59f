"""Programs of a check's own: they run to their end, and whatever ends the wait ends them and their children."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import FrameType

import psutil
import pytest

from bottleneck_doctor.gate.sides.program import finished


def test_what_it_wrote_is_told(tmp_path: Path) -> None:
    done = finished(["sh", "-c", "pwd; echo oh >&2; exit 3"], cwd=tmp_path, environment=os.environ)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (3, f"{tmp_path}\n", b"oh\n")
    both = finished("echo $A; echo oh >&2", cwd=tmp_path, environment={**os.environ, "A": "a"}, together=True)
    assert both.stdout == b"a\noh\n"
    with pytest.raises(OSError, match="nowhere"):
        finished(["sh"], cwd=tmp_path / "nowhere", environment=os.environ)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("obstinate", [False, True])
def test_an_interruption_ends_it_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstinate: bool
) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bottleneck_doctor.gate.sides.program.TIDYING_SECONDS", 0.5 if obstinate else 20.0)
    trap = "trap '' TERM; " if obstinate else "trap 'rm half; exit 1' TERM; "
    before = signal.signal(signal.SIGALRM, interrupt)
    begun = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            finished(f"{trap} touch half; sleep 60 & echo $! > child; wait", cwd=tmp_path, environment=os.environ)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < 15
    # It was asked first, so that what it had half made is gone.
    assert (tmp_path / "half").exists() is obstinate
    child = int((tmp_path / "child").read_text())
    # One that was killed takes its moment to be gone.
    until = time.monotonic() + 5
    while alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(child)
