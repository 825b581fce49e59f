"""The command that starts the entrypoint: alone, or under the launcher that the user named.

The launcher is always used as the user wrote it. Doctor never adds one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import PurePath

STARTERS = frozenset({"env", "flux", "jsrun", "mpiexec", "mpirun", "nice", "numactl", "setsid", "srun", "taskset"})
"""Commands that start any program, so the interpreter has to stand before the script. Python launchers, such as
torchrun, start the interpreter themselves."""


def launcher_words(text: str) -> tuple[str, ...]:
    """The words of `--launch`. Raises `ValueError` if quotes are not closed, or there are no words."""
    words = tuple(shlex.split(text))
    if not words:
        raise ValueError("it is empty")
    return words


def command_of(text: str) -> str | None:
    """The path of a launcher that starts its own interpreter, as a shell finds it. None if it starts any program, is
    not found, or `text` is no command."""
    try:
        words = launcher_words(text)
    except ValueError:
        return None
    found = None if starts_any_program(words) else shutil.which(words[0])
    return None if found is None else os.path.abspath(found)


def located(launcher: Sequence[str], python: str) -> tuple[str, ...] | None:
    """The launcher with the full path of its command, beside the interpreter or else in PATH. None if not found."""
    places = os.pathsep.join([os.path.dirname(python), os.environ.get("PATH", os.defpath)])
    found = shutil.which(launcher[0], path=places)
    return None if found is None else (found, *launcher[1:])


def command(python: str, launcher: Sequence[str], entrypoint: Sequence[str]) -> tuple[str, ...]:
    """The command to start. `entrypoint`: a script or `-m MODULE`, with its arguments."""
    if not launcher:
        return (python, *entrypoint)
    launcher = located(launcher, python) or launcher
    if starts_any_program(launcher):
        return (*launcher, python, *entrypoint)
    return (*launcher, *entrypoint)


def listen_address(text: str) -> tuple[str, int]:
    """Host and port from the `HOST:PORT` of `--listen`; port 0 is any free port. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT.")
    return host.strip("[]"), int(port)


def slurm_address(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Where to listen inside a SLURM job of several hosts: at this host's name, on any port. None elsewhere."""
    nodes = environment.get("SLURM_JOB_NUM_NODES") or environment.get("SLURM_NNODES") or ""
    return (socket.gethostname(), 0) if nodes.isdigit() and int(nodes) > 1 else None


def starts_any_program(launcher: Sequence[str]) -> bool:
    """Whether the launcher starts any program, not only a script: one of `STARTERS`, with no Python launcher after it.

    `srun torchrun` takes a script; `srun --ntasks 2` takes any program.
    """
    names = [PurePath(word).name for word in launcher]
    if names[0] not in STARTERS:
        return False
    inner = {"torchrun", "accelerate", "deepspeed", "python", "python3"}
    return not any(name in inner for name in names[1:])
