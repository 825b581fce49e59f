"""Which Python runs the script if the user gives none: doctor's own if it has torch, else one that is found.

Doctor may be installed in an environment of its own, as by `pipx install` and `uv tool install`. Then it looks for the
interpreter where a user expects it: the activated environment, the one in the project, `python` as a shell finds it.
It takes the first one that has torch, and the terminal says which one that is.

The search is made of functions of values; only `torch_of`, `own_torch` and `chosen` ask the machine.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.session.kernels import Kernel

OLDEST_TORCH = (2, 4)
IN_PROJECT = (".venv", "venv")
"""Names of a project's environment folder, as uv, PDM, Poetry and Python's own documentation use them."""

_ASKED = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import importlib.util
found = importlib.util.find_spec("torch")
if found is None or found.origin is None:
    sys.exit(3)
try:
    from importlib.metadata import version
    sys.stdout.write("\\ntorch " + version("torch"))
except Exception:
    sys.stdout.write("\\ntorch ")
"""
"""Asks for torch's version without importing torch, which would take seconds. The current folder is left out, because
torch is not installed there."""
_SECONDS = 60.0
"""Seconds to wait for an interpreter, which may be slow to start from a network disk."""


@dataclass(frozen=True)
class Candidate:
    """An interpreter. `what`: how a sentence describes it."""

    python: str
    what: str


@dataclass(frozen=True)
class Chosen:
    """`python`: the interpreter that runs the script; None: doctor's own. `note`: what to tell the user about it."""

    python: str | None = None
    note: str = ""


def candidates(
    environment: Mapping[str, str],
    folders: Iterable[Path],
    runs: Callable[[str], bool],
    *,
    own: str,
    launcher: str | None = None,
    kernel: Kernel | None = None,
) -> list[Candidate]:
    """Interpreters that the user may train with, the likeliest first, each folder once.

    `folders`: those of the project, from the script's folder and the current one upward. `runs`: whether a path is a
    program. `own`: doctor's interpreter, whose folder is left out. `launcher`: the path of the command before the
    script. `kernel`: the one of a notebook.
    """
    found: list[Candidate] = []
    known = {os.path.dirname(own)}

    def new(python: str) -> bool:
        return os.path.dirname(python) not in known and runs(python)

    for each in _places(environment, folders, launcher, kernel):
        # Of the interpreters in PATH, take the one that a shell would start.
        python = next(filter(new, each.pythons), None)
        if python is not None:
            known.add(os.path.dirname(python))
            found.append(Candidate(python, each.what))
    return found


def activated(environment: Mapping[str, str]) -> list[str]:
    """Folders of the activated environments. The one whose programs a shell finds first comes first.

    Conda's `base` does not count, because it is activated in every shell.
    """
    prefixes = [environment.get("VIRTUAL_ENV", "")]
    if environment.get("CONDA_DEFAULT_ENV") != "base":
        prefixes.append(environment.get("CONDA_PREFIX", ""))
    path = _path(environment)

    def place(prefix: str) -> int:
        programs = os.path.normpath(os.path.join(prefix, "bin"))
        return path.index(programs) if programs in path else len(path)

    return sorted((each for each in prefixes if each), key=place)


def choose(own: str, found: Sequence[Candidate], torch_of: Callable[[str], str | None]) -> Chosen:
    """The first of `found` that has torch, if doctor's own interpreter, `own`, has none.

    `torch_of`: the version of an interpreter's torch; "" if it is not known, None if there is no torch. Raises
    `DoctorError` `torch-missing` if no interpreter has torch, and `torch-too-old`.
    """
    for each in found:
        torch = torch_of(each.python)
        if torch is not None:
            check_torch(each.python, torch)
            version = f" {torch}" if torch else ""
            return Chosen(
                each.python,
                f"The script runs with {each.python} (torch{version}), {each.what}, because doctor's own Python has no "
                "torch",
            )
    looked = ", ".join(each.python for each in found)
    tried = f", and {looked} has none either" if len(found) == 1 else f", and none of {looked} has it" if found else ""
    raise DoctorError(
        "torch-missing",
        f"Doctor found no Python with torch to run the script: its own, {own}, has no torch{tried}.",
        "Activate the environment that you train in, or give its interpreter: --python PATH.",
    )


def another(environment: Mapping[str, str], own: str, places: Iterable[str]) -> str:
    """The note if doctor's own interpreter, `own`, runs the script although a different environment is activated; ""
    otherwise. `places`: the paths of doctor's interpreter and its torch."""
    prefix = next(iter(activated(environment)), None)
    if prefix is None or any(
        Path(os.path.realpath(place)).is_relative_to(os.path.realpath(prefix)) for place in places
    ):
        return ""
    python = os.path.join(prefix, "bin", "python")
    return f"The script runs with doctor's own Python, {own}. To use the activated environment, give --python {python}"


def another_kernel(kernel: Kernel | None, own: str) -> str:
    """The note if doctor's own interpreter, `own`, runs a notebook that has another kernel; "" otherwise."""
    if kernel is None or os.path.abspath(kernel.python) == os.path.abspath(own):
        return ""
    return (
        f"The notebook runs with doctor's own Python, {own}. To use that of its kernel, {kernel.name}, give --python "
        f"{kernel.python}"
    )


def check_torch(python: str, torch: str) -> None:
    """Raise `DoctorError` `torch-too-old` if this version of torch is older than `OLDEST_TORCH`."""
    version = re.match(r"(\d+)\.(\d+)", torch)
    if version is not None and (int(version[1]), int(version[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise DoctorError(
            "torch-too-old",
            f"{python} has torch {torch}, but doctor needs torch {oldest} or newer.",
            f"Give an interpreter that has torch {oldest} or newer: --python PATH.",
        )


def missing(detail: str) -> DoctorError:
    """The error that the script itself could not import torch. `detail`: the end of what it wrote."""
    return DoctorError(
        "torch-missing",
        "The Python that runs the script has no torch.",
        "Give the interpreter that you train with (--python PATH), or install torch into this one.",
        Exit.ENTRYPOINT_FAILED,
        detail=detail,
    )


# -- the edge ---------------------------------------------------------------------------------------------------------


def chosen(folders: Iterable[Path], launcher: str | None = None, kernel: Kernel | None = None) -> Chosen:
    """The interpreter for a script in a project of these `folders`, on this machine and in this environment. `kernel`:
    the one of a notebook.

    Raises what `choose` raises.
    """
    own = sys.executable
    if (torch := own_torch()) is not None:
        check_torch(own, torch.version)
        return Chosen(note=another_kernel(kernel, own) or another(os.environ, own, (sys.prefix, torch.file)))
    found = candidates(os.environ, folders, _runs, own=own, launcher=launcher, kernel=kernel)
    return choose(own, found, torch_of)


@dataclass(frozen=True)
class OwnTorch:
    """Torch in doctor's own environment. `version` is "" if it is not known."""

    version: str
    file: str


def own_torch() -> OwnTorch | None:
    """The torch in doctor's own environment, without importing it; None if there is none."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return OwnTorch(version, spec.origin)


def torch_of(python: str) -> str | None:
    """The version of an interpreter's torch; "" if it is not known, None if there is no torch or it does not run."""
    try:
        done = subprocess.run(
            [python, "-c", _ASKED], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # The user's sitecustomize may have printed something before.
    _, said, version = done.stdout.decode(errors="replace").rpartition("\ntorch ")
    return version.strip() if said else None


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


# -- places -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """A place to search. `pythons`: paths, of which the first that runs counts."""

    pythons: Sequence[str]
    what: str


def _places(
    environment: Mapping[str, str], folders: Iterable[Path], launcher: str | None, kernel: Kernel | None
) -> Iterator[_Place]:
    if kernel is not None:
        yield _Place([kernel.python], f"the one of the notebook's kernel, {kernel.name}")
    if launcher is not None:
        # A launcher of Python's starts the interpreter that it is installed beside.
        yield _Place([os.path.join(os.path.dirname(launcher), "python")], "the one in the launcher's folder")
    for prefix in activated(environment):
        yield _Place([os.path.join(prefix, "bin", "python")], "the one of the activated environment")
    for folder in folders:
        for name in IN_PROJECT:
            yield _Place([str(folder / name / "bin" / "python")], f"the one in the project's {name}")
    for name in ("python", "python3"):
        yield _Place([os.path.join(each, name) for each in _path(environment)], f"`{name}` in PATH")


def _path(environment: Mapping[str, str]) -> list[str]:
    return [os.path.abspath(each) for each in environment.get("PATH", os.defpath).split(os.pathsep) if each]
