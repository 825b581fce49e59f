"""Which Python a notebook's kernel runs, by what Jupyter keeps of kernels on this machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.runtime.wire import notebooks

JUPYTERS_OWN = "python3"
"""The kernel of whichever environment Jupyter is started from, so it says nothing."""


@dataclass(frozen=True)
class Kernel:
    """`name`: as the notebook has it. `python`: the path of its interpreter."""

    name: str
    python: str


def kernel_of(notebook: Path, environment: Mapping[str, str]) -> Kernel | None:
    """The kernel that a notebook names, if it is installed here and is a Python of its own; None for all else, a file
    that can't be read or is no program among it."""
    try:
        name = notebooks.program(notebook.read_bytes()).kernel
    except (OSError, notebooks.NotAProgram):
        return None
    if not name or name == JUPYTERS_OWN or os.path.basename(name) != name:
        return None
    for folder in _folders(environment):
        try:
            said = json.loads((folder / "kernels" / name.lower() / "kernel.json").read_bytes())
            python = said["argv"][0]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if isinstance(python, str) and os.path.isabs(python) and os.access(python, os.X_OK):
            return Kernel(name, python)
    return None


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where Jupyter looks, the user's own first (Jupyter's documentation, "Common Directories and File Locations")."""
    for entry in environment.get("JUPYTER_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry)
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    shared = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "jupyter"
    mac = sys.platform == "darwin"
    yield Path(environment.get("JUPYTER_DATA_DIR") or (home / "Library" / "Jupyter" if mac else shared))
    for prefix in (environment.get("VIRTUAL_ENV"), environment.get("CONDA_PREFIX"), sys.prefix, "/usr/local", "/usr"):
        if prefix:
            yield Path(prefix) / "share" / "jupyter"
