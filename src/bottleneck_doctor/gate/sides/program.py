"""Programs of a check's own that are waited for: git, and what builds the base.

Each has a session of its own, so that Ctrl-C reaches the doctor alone; whatever ends the wait early then ends the
program with all that it started, and lets it tidy up before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TIDYING_SECONDS = 10.0
"""What a program has to end by itself once it was asked to: git takes back a checkout that it had half made."""


def finished(
    command: Sequence[str] | str, *, cwd: Path, environment: Mapping[str, str], together: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a program without input to its end. A `command` of one text is a shell's. `together`: what it writes to
    stderr is in its stdout.

    Raises `OSError` where it can't be started.
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
    """End a program and its children: asked first, so that what they leave is whole."""
    try:
        _signal(process, signal.SIGTERM)
        # Not `wait`, from which a full pipe would keep it: what it still says is read.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=TIDYING_SECONDS)
    finally:
        # Also where the user is in a hurry. Of those that left the group nothing more is read.
        _signal(process, signal.SIGKILL)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
