"""What is started, and how: a script, a module (each with or without a launcher), or a command as it is. Every doctor
command that starts a training uses the same `Start`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bottleneck_doctor.session import launch


@dataclass(frozen=True, kw_only=True)
class Start:
    """The entrypoint, and how it is started. One of `script`, `module` and `words` is given."""

    script: Path | None = None
    module: str | None = None
    arguments: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """A command that is run as it is, instead of a script or module under an interpreter."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set for that command."""
    launcher: tuple[str, ...] = ()
    """The launcher command that the user put before the script."""
    listen: tuple[str, int] | None = None
    """Host and port at which ranks on other hosts reach doctor; None: there are no other hosts."""
    python: str | None = None
    """The interpreter that the user named, or that was found; None: the one that runs doctor. With `words` it does not
    run the training: it only answers questions about the environment, if the interpreter of `words` is not known."""
    in_place: bool = False
    """Whether the script may change files as it would without doctor."""

    @property
    def interpreter(self) -> str:
        """The interpreter that runs the training, as far as that can be known."""
        return interpreter_of(self.words) or self.python or sys.executable

    @property
    def name(self) -> str:
        """The script, module or command without its arguments."""
        return self.module or (self.words[0] if self.words else str(self.script))

    def entrypoint(self) -> tuple[str, ...]:
        """The entrypoint and its arguments, without the interpreter."""
        if self.words:
            return self.words
        target = ("-m", self.module) if self.module is not None else (str(self.script),)
        return (*target, *self.arguments)

    def argv(self, entrypoint: Sequence[str] | None = None) -> tuple[str, ...]:
        """The whole command, with launcher and interpreter. `entrypoint`: replaces the entrypoint, for another path to
        the same one."""
        entrypoint = self.entrypoint() if entrypoint is None else tuple(entrypoint)
        return entrypoint if self.words else launch.command(self.interpreter, self.launcher, entrypoint)

    def again(self, *ours: str) -> list[str]:
        """A doctor command (`ours`: `run`, `--seed`, `7`, ...) that starts the same. It may contain secrets. Of the
        variables set for a command, it contains only the names."""
        command = ["doctor", *ours]
        for option, value in (
            ("--launch", shlex.join(self.launcher) if self.launcher else None),
            ("--listen", None if self.listen is None else "{}:{}".format(*self.listen)),
            ("--python", None if self.words else self.python),
        ):
            command += [] if value is None else [option, value]
        command += ["--in-place"] if self.in_place else []
        entrypoint = self.entrypoint()
        if self.words:
            return [
                *command,
                "--exec",
                " ".join([*(f"{name}=..." for name in self.environment), shlex.join(entrypoint)]),
            ]
        # One `--` separates the arguments of the script or module.
        head = 1 if self.module is None else 2
        separator = ["--"] if entrypoint[head:] else []
        return [*command, *entrypoint[:head], *separator, *entrypoint[head:]]


def interpreter_of(command: Sequence[str]) -> str | None:
    """The interpreter under which a command runs: the command itself, or the one in its folder. None if not known."""
    if not command:
        return None
    folder, name = os.path.split(command[0])
    beside = command[0] if name.startswith("python") else os.path.join(folder, "python")
    return beside if folder and os.access(beside, os.X_OK) else None
