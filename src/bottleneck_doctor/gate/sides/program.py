"""Runs the programs that a check needs itself, and waits for them: git, and the build of the base.

Each program gets a session of its own, so that Ctrl-C reaches only the doctor. If the wait ends early, the program and
everything that it started are ended too, after it had time to tidy up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TIDYING_SECONDS = 10.0
"""Seconds for a program to end by itself after it was asked to: git removes a checkout that is only half made."""


def finished(
    command: Sequence[str] | str, *, cwd: Path, environment: Mapping[str, str], together: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, without input. A `command` that is one text is run by a shell. `together`: whether its
    stderr goes to its stdout.

    Raises `OSError` if it can't be started.
    """
    process = subprocess.Popen(
        command,
        shell=isinstance(command, str),
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate()
    except BaseException:
        _end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its children. They are asked first, so that they leave nothing half done."""
    try:
        _signal(process, signal.SIGTERM)
        # Not `wait`: a program that writes into a full pipe would never end, so its output is read.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=TIDYING_SECONDS)
    finally:
        # This happens even after a second Ctrl-C. The output of processes that left the group is not read any more.
        _signal(process, signal.SIGKILL)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
