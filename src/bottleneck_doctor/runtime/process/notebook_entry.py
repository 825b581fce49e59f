"""Lets Python start a notebook as if it were a script.

Python asks `sys.path_hooks` for whoever can import from the path that it is to run, as for a zip file, before it takes
that for a script. So `python train.ipynb` runs the code of its cells, and a launcher's `python -u train.ipynb` does.
"""

from __future__ import annotations

import builtins
import linecache
import os
import sys
from importlib.machinery import ModuleSpec
from types import CodeType
from typing import Any, Optional

from ..wire import notebooks


def install() -> None:
    sys.path_hooks.insert(0, _Notebook)


class _Notebook:
    """A finder and loader of the one module that a notebook is: `__main__`."""

    def __init__(self, path: str) -> None:
        if not notebooks.is_notebook(path) or not os.path.isfile(path):
            raise ImportError
        self._given = path
        self._path = os.path.abspath(path)

    def find_spec(self, name: str, target: Any = None) -> Optional[ModuleSpec]:
        if name != "__main__":
            return None
        spec = ModuleSpec(name, self, origin=self._path)  # type: ignore[arg-type]  # All that `runpy` asks of a loader.
        spec.has_location = True
        return spec

    def get_code(self, name: str) -> CodeType:
        with open(self._path, "rb") as file:
            text = notebooks.program(file.read()).text
        _remember(self._path, text)
        # What the notebook imports lies beside it, as with a script; and what it opens, as with Jupyter.
        folder = os.path.dirname(os.path.realpath(self._path))
        sys.path[:] = [folder if entry == self._given else entry for entry in sys.path]
        os.chdir(folder)
        _offer_what_notebooks_have()
        return compile(text, self._path, "exec", dont_inherit=True)


def _remember(path: str, text: str) -> None:
    """Show the program's lines wherever lines of the file are asked for: in tracebacks, by `inspect` and line_profiler.

    With the file's size and time, the entry stays until the file changes.
    """
    stat = os.stat(path)
    linecache.cache[path] = (stat.st_size, stat.st_mtime, text.splitlines(keepends=True), path)


def _offer_what_notebooks_have() -> None:
    """The two names that IPython gives each cell. Where no notebook runs, IPython's own `get_ipython` is None, too."""
    for name, value in (("display", print), ("get_ipython", lambda: None)):
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
