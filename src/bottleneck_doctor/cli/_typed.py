"""What stands in the place of a script: words as somebody types them to train, in; what they mean, out.

People put `doctor run` before the command that they use: `python train.py`, `torchrun --nproc-per-node 2 train.py`,
`nnUNetv2_train 3 2d 0`, `./train.sh`. Each has an option of its own; these words say as much.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.runtime.wire.notebooks import SOURCES

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_LAUNCHERS = ("torchrun", "deepspeed", "accelerate")
"""Commands of which the first Python file is the script that they start."""


@dataclass(frozen=True)
class Typed:
    """The same in doctor's own terms: `python` and `launch` as for these options, `command` as for `--exec`."""

    words: tuple[str, ...] = ()
    module: str | None = None
    python: str | None = None
    launch: str | None = None
    command: tuple[str, ...] = ()


def read(words: tuple[str, ...], *, launched: bool = False) -> Typed | None:
    """What `words` mean, where they begin with a command; None where they begin with a script, or with nothing.

    `launched`: a launcher is given already, so only an interpreter may stand here.
    """
    found = (_other_script(Path(words[0])) or command_named(Path(words[0]))) if words else None
    if found is None:
        return None
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    if _PYTHON.fullmatch(words[0]):
        if rest[:1] == ("-m",) and len(rest) > 1:
            return Typed(module=rest[1], words=rest[2:], python=found)
        if rest and not rest[0].startswith("-"):
            return Typed(words=rest, python=found)
    if launched:
        return None
    if words[0] in _LAUNCHERS:
        at = next((at for at, word in enumerate(rest) if word.endswith(SOURCES) and Path(word).is_file()), None)
        if at is not None:
            return Typed(words=rest[at:], launch=shlex.join([words[0], *rest[:at]]))
    return Typed(command=(found, *rest))


def _other_script(script: Path) -> str | None:
    """The path of an executable file that another interpreter than Python runs, as its first line says; else None."""
    try:
        with script.open("rb") as file:
            first = file.readline(256)
    except (OSError, ValueError):
        return None
    if not first.startswith(b"#!") or b"python" in first or not os.access(script, os.X_OK):
        return None
    return os.path.abspath(script)


def command_named(script: Path) -> str | None:
    """The path of the command that is called like this, in PATH or beside doctor; None where there is none, or where it
    may be meant as a file."""
    if script.suffix in SOURCES or script.name != str(script):
        return None
    try:
        # Whoever forgets the ending means the file.
        if script.exists() or script.with_name(f"{script.name}.py").exists():
            return None
    except (OSError, ValueError):
        return None  # No name of a file, and of no command either.
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)])
    return shutil.which(script, path=places)
