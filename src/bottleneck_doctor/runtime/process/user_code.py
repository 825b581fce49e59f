"""Which code is the user's own, and which of its lines is running."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from types import FrameType
from typing import List, Optional, Sequence, Tuple

from ..wire.messages import Site
from .originals import get_frame

LIBRARY_MARKS = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
"""Parts of the paths of what was installed."""
OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the guest."""
_STDLIB_FOLDER = os.path.dirname(os.path.abspath(os.__file__))
_FRAMEWORKS = frozenset(
    {"IPython", "accelerate", "deepspeed", "ipykernel", "lightning", "pytest", "pytorch_lightning", "torch"}
)
"""Packages that run other people's code, so that their own is not what trains."""
_IMPORTS = re.compile(r"^from ([\w.]+) import ", re.MULTILINE)

Line = Tuple[str, int]
"""A file, as its code names it, and a line."""

_started: Optional[str] = None
"""What `_started_package` has found; None until it is known what the process runs."""


def is_users_file(name: str) -> bool:
    """Whether a file, as code objects name it, is the user's own, and not doctor's, torch's or another library's. Where
    the program that was started is an installed package, such as `python -m nnunetv2...`, that counts as theirs."""
    if name.startswith((OWN_FOLDER, "<")):
        return False
    if _is_installed(name):
        started = _started_package()
        return bool(started) and name.startswith(started)
    return not name.startswith(_STDLIB_FOLDER)


def _is_installed(name: str) -> bool:
    return any(mark in name for mark in LIBRARY_MARKS)


def _started_package() -> str:
    """The folder, with a separator behind it, of the installed package that this process runs; "" where it runs a
    script of the user's."""
    global _started
    if _started is None:
        main = sys.modules.get("__main__")
        name, file = getattr(getattr(main, "__spec__", None), "name", None), getattr(main, "__file__", None)
        if name is None and file is None:
            return ""  # Python is only starting.
        try:
            _started = _folder_of(name or _package_of_script(os.path.abspath(str(file))))
        except Exception:  # Whatever an import system of the user's makes of the question.
            _started = ""
    return _started


def _package_of_script(file: str) -> str:
    """The package that a script lies in, or that it was installed to run, as `bin/nnUNetv2_train`; "" for others."""
    for mark in LIBRARY_MARKS:
        if mark in file:
            return file.partition(mark)[2].split(os.sep)[0]
    if os.path.dirname(file) != os.path.dirname(os.path.abspath(sys.executable)):
        return ""
    with open(file, encoding="utf-8") as script:
        imported = _IMPORTS.search(script.read(4096))
    return "" if imported is None else imported[1]


def _folder_of(module: str) -> str:
    """The folder of an installed module's top package, with a separator behind it; "" where it is none."""
    top = module.partition(".")[0]
    found = find_spec(top) if top and top not in _FRAMEWORKS else None
    folders = [] if found is None else list(found.submodule_search_locations or [])
    installed = [each for each in folders if _is_installed(each)]
    return os.path.join(os.path.abspath(installed[0]), "") if installed else ""


def user_site(depth: int = 1) -> Optional[Site]:
    """The innermost line of the user's own code on the stack."""
    return next(iter(sites_of(user_lines(depth + 1, 1))), None)


def user_lines(depth: int = 1, most: int = 16) -> List[Line]:
    """The lines of the user's own code on the stack, from the innermost out, `most` at most."""
    lines: List[Line] = []
    frame: Optional[FrameType] = get_frame(depth)
    while frame is not None and len(lines) < most:
        name = frame.f_code.co_filename
        if is_users_file(name):
            lines.append((name, frame.f_lineno))
        frame = frame.f_back
    return lines


def sites_of(lines: Sequence[Line]) -> List[Site]:
    """The same lines with the whole paths of their files, which take most of the time."""
    return [Site(os.path.abspath(name), line) for name, line in lines]
