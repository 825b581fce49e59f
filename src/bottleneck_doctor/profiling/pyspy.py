"""Runs py-spy beside a training process: `start` when a window is about to be granted, `stop` once it is done.

A raw file of collapsed stacks comes out, or a `Warning` that says why there is none. py-spy reads the training from
outside, but slows it: the training is paused while its stacks are read. Windows under py-spy therefore never count for
a speedup.

How py-spy is called, and why:

- waiting counts (`--idle`), because a loader that sleeps, and a main process that waits for it, are what we look for;
- it wakes promptly (`promptness`), because otherwise it does not see short bursts of work;
- threads are named (`--threads`), so that helper threads, which mostly wait, are known from those that train;
- processes are paused while they are read. Without that (`--nonblocking`) they are slowed less, but 1 to 2 in 100
  stacks were inconsistent, with functions in places where nothing calls them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.profiling import obstacle, raw
from bottleneck_doctor.profiling.promptness import make_prompt

RATE = 100
"""Samples a second of each process, if there are few processes."""
MOST_SAMPLES = 400
"""Samples a second of all processes together: each takes about 1.5 ms, in which its process stands still. With ten
workers on two cores, 1100 a second made the steps seven times as long."""

_READY = b"Sampling process"
_READY_SECONDS = 10.0
_END_SECONDS = 20.0
"""How long py-spy may take to write its file."""


def usual_rate(processes: int) -> int:
    """Samples a second of each of so many processes."""
    return min(RATE, max(1, MOST_SAMPLES // processes))


class PySpySampler:
    """One recording of the process `pid` and its children, written into `folder`."""

    def __init__(self, pid: int, folder: Path, *, rate: int = RATE, native: bool = False, name: str = "py-spy") -> None:
        self.path = folder / f"{name}.raw"
        self.seconds = 0.0
        """How long py-spy sampled, in seconds; known after `stop`."""
        self._pid = pid
        self._rate = rate
        self._native = native
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._reason = ""
        self._began = 0.0

    def start(self) -> None:
        """Start py-spy and wait until it samples. If that fails, `stop` returns why."""
        tool = find_tool()
        if tool is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed once py-spy has ended
        command = [tool, "record", "--pid", str(self._pid), "--output", str(self.path), "--format", "raw"]
        command += ["--rate", str(self._rate), "--subprocesses", "--full-filenames", "--threads", "--idle"]
        command += ["--native"] if self._native else []
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=subprocess.STDOUT,
                # Of its own: a Ctrl-C in the terminal is the supervisor's to handle.
                start_new_session=True,
            )
            make_prompt(self._process.pid)
        deadline = time.monotonic() + _READY_SECONDS
        while self._running() and _READY not in self._output() and time.monotonic() < deadline:
            time.sleep(0.02)
        self._began = time.monotonic()
        if not self._running():
            self._reason = self._why_not(tool)

    def _why_not(self, tool: str) -> str:
        """What py-spy says about this process alone: with `--subprocesses` it doesn't say why it found nothing."""
        command = [tool, "dump", "--pid", str(self._pid)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_READY_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stderr.decode(errors="replace") if done.returncode else ""

    def stop(self) -> Path | Warning:
        """End the recording: its file, or why there is none. Can be called twice."""
        here = obstacle.look_around()
        if self._process is None:
            return obstacle.no_tool() if find_tool() is None else obstacle.explain("it can't be started", here)
        if self._said is not None:
            self.seconds = time.monotonic() - self._began
            self._end()
            try:
                raw.without_arguments(self.path)
            except OSError:
                self.path.unlink(missing_ok=True)
        if self.path.is_file() and self.path.stat().st_size:
            return self.path
        self.path.unlink(missing_ok=True)
        return obstacle.explain(self._reason, here)

    def abandon(self) -> None:
        """End the recording at once, and leave no file."""
        if self._process is not None and self._said is not None:
            self._kill()
            self._said.close()
            self._said = None
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> PySpySampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end(self) -> None:
        assert self._process is not None
        assert self._said is not None
        if self._running():
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
        self._reason = self._reason or self._output().decode(errors="replace")
        self._said.close()
        self._said = None

    def _kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        # If py-spy was killed while it had paused the process, the process would stay paused.
        with contextlib.suppress(OSError, AttributeError):
            os.kill(self._pid, signal.SIGCONT)

    def _running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _output(self) -> bytes:
        assert self._said is not None
        # Read without seeking, because py-spy writes at the position of the same open file.
        return os.pread(self._said.fileno(), 1 << 16, 0)


def find_tool() -> str | None:
    """The py-spy of this environment, else the one in PATH."""
    beside = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return beside or shutil.which("py-spy")
