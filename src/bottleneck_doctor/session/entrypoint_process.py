"""The entrypoint's process: started with a guest in it, in a sandbox if there is one, and ended with its children."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bottleneck_doctor.monitor import cpu_seconds
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.protection.sandbox import NotHere
from bottleneck_doctor.runtime.wire import channel
from bottleneck_doctor.session import process_tree
from bottleneck_doctor.session.script_output import ScriptOutput

ENTRY_FOLDER = Path(__file__).parents[1] / "runtime" / "entry"
"""This folder goes into PYTHONPATH and lets the guest in."""
LAUNCHER_GRACE = 3.0
"""Seconds that a launcher gets to notice that its ranks have ended, and to clean up."""

QUIET_VARIABLES = {
    "WANDB_MODE": "offline",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "MPLBACKEND": "Agg",
}
"""Set in the examined process unless the user has set them: loggers stay offline, no window opens."""


@dataclass(frozen=True)
class Command:
    """The entrypoint as the user would start it: the interpreter and its arguments. `terminal`: whether it gets one."""

    argv: tuple[str, ...]
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    launched: bool = False
    """Whether it starts with a launcher, which gets time to clean up."""
    terminal: bool = False


class EntrypointProcess:
    """The process of a command. Use `start`, then `wait` on a thread, then `end`.

    `folder`: the session's own. `scratch`: the folder inside it for files of the guests and of loggers.
    """

    def __init__(
        self, command: Command, folder: Path, scratch: Path, protector: Protector, output: ScriptOutput
    ) -> None:
        self._command = command
        self._folder = folder
        self._scratch = scratch
        self._protector = protector
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None if it was not started, or could not be."""
        return self._process.pid if self._process is not None else None

    def start(self, invitation: Mapping[str, Any]) -> None:
        """Start it. `invitation`: what its guests must know. Raises `OSError` if it can't be started at all."""
        environment = self._environment()
        try:
            self._start(environment, invitation)
        except NotHere as refused:
            self._protector.give_up(str(refused))
            self._start(environment, invitation)

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, **self._command.environment}
        # A tracking server that the user configured stays. Without one, mlflow would write into the user's folder.
        if "MLFLOW_TRACKING_URI" not in environment:
            environment["MLFLOW_TRACKING_URI"] = f"file:{self._scratch / 'mlruns'}"
            environment["MLFLOW_ALLOW_FILE_STORE"] = "true"  # From 3 on it refuses to keep records in a folder.
        # wandb writes its files in a separate program, which the guard does not see.
        environment = {**QUIET_VARIABLES, "WANDB_DIR": str(self._scratch), **environment}
        paths = [str(ENTRY_FOLDER), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        return environment

    def _start(self, environment: Mapping[str, str], invitation: Mapping[str, Any]) -> None:
        """Start it, in a sandbox if there is one. Raises `NotHere` if the sandbox is refused."""
        entered = self._protector.enter(self._command.argv, self._folder)
        said = json.dumps({**invitation, **self._protector.invitation(self._folder)})
        with self._output.streams() as (stdin, stdout):
            try:
                self._process = subprocess.Popen(
                    self._command.argv if entered is None else entered.argv,
                    cwd=self._command.cwd,
                    env={**environment, channel.VARIABLE: said},
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=() if entered is None else entered.passed,
                )
            except OSError:
                if entered is not None:
                    entered.abandon()
                raise
        if entered is not None:
            try:
                entered.check()
            except (NotHere, OSError):
                self._process.wait()
                self._process = None
                raise

    def wait(self) -> int:
        """Wait for its end and return its exit code as `subprocess` gives it: negative for a signal."""
        assert self._process is not None
        return self._process.wait()

    def end(self, tell: Callable[[], bool]) -> float | None:
        """End it and everything that it started. Returns the CPU seconds of processes that no parent waited for; None
        if it never ran.

        `tell` asks the guests to end, and returns whether there are any.
        """
        if self._process is None:
            return None
        family = process_tree.descendants(self._process.pid)
        orphans = cpu_seconds(family)
        waited = cpu_seconds(process_tree.children(self._process.pid))
        try:
            self._end_in_peace(self._process, tell)
        finally:
            if self._command.launched and (self._process.poll() or 0) >= 0:
                orphans -= waited  # A launcher that ended by itself has waited for them: its own time includes theirs.
            process_tree.kill(self._process, family)
        return orphans

    def _end_in_peace(self, process: subprocess.Popen[bytes], tell: Callable[[], bool]) -> None:
        """Tell every rank to end at once. A launcher then sees that all have succeeded, and cleans up."""
        if process.poll() is not None:
            return
        told = tell()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAUNCHER_GRACE if self._command.launched and told else 0.5)
        if self._command.launched and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LAUNCHER_GRACE)
