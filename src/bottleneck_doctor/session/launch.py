"""The command that starts the entrypoint: alone, or under the launcher that the user named.

The launcher is always the user's own words; a single process is never put under one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import PurePath

STARTERS = frozenset({"env", "flux", "jsrun", "mpiexec", "mpirun", "nice", "numactl", "setsid", "srun", "taskset"})
"""Commands that start any program, so that the interpreter must stand before the script. A launcher of Python's starts
the interpreter itself."""


def launcher_words(text: str) -> tuple[str, ...]:
    """The words of `--launch`. Raises `ValueError` where its quotes are not paired, or there are none."""
    words = tuple(shlex.split(text))
    if not words:
        raise ValueError("it is empty")
    return words


def command_of(text: str) -> str | None:
    """The path of the launcher's command that starts an interpreter of its own, as a shell finds it. None for one that
    starts any program, for one that isn't there, and for what is no command."""
    try:
        words = launcher_words(text)
    except ValueError:
        return None
    found = None if starts_any_program(words) else shutil.which(words[0])
    return None if found is None else os.path.abspath(found)


def located(launcher: Sequence[str], python: str) -> tuple[str, ...] | None:
    """The launcher with its command's path, beside the interpreter or as a shell finds it. None where there is none."""
    places = os.pathsep.join([os.path.dirname(python), os.environ.get("PATH", os.defpath)])
    found = shutil.which(launcher[0], path=places)
    return None if found is None else (found, *launcher[1:])


def command(python: str, launcher: Sequence[str], entrypoint: Sequence[str]) -> tuple[str, ...]:
    """What to start. `entrypoint`: a script or `-m MODULE`, with its arguments."""
    if not launcher:
        return (python, *entrypoint)
    launcher = located(launcher, python) or launcher
    if starts_any_program(launcher):
        return (*launcher, python, *entrypoint)
    return (*launcher, *entrypoint)


def listen_address(text: str) -> tuple[str, int]:
    """`HOST:PORT` of `--listen`, PORT 0 for any. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT.")
    return host.strip("[]"), int(port)


def slurm_address(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Where to listen inside a SLURM job of several hosts: this one's name, any port. None elsewhere."""
    nodes = environment.get("SLURM_JOB_NUM_NODES") or environment.get("SLURM_NNODES") or ""
    return (socket.gethostname(), 0) if nodes.isdigit() and int(nodes) > 1 else None


def starts_any_program(launcher: Sequence[str]) -> bool:
    """Whether the launcher wants a program and not a script: one of `STARTERS`, with no other command behind it.

    `srun torchrun` wants a script; of `srun --ntasks 2` the words behind it are its options.
    """
    names = [PurePath(word).name for word in launcher]
    if names[0] not in STARTERS:
        return False
    inner = {"torchrun", "accelerate", "deepspeed", "python", "python3"}
    return not any(name in inner for name in names[1:])
