"""The syntax trees of the user's files, read once each."""

from __future__ import annotations

import ast
import os
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, Optional

from ..wire import notebooks
from .user_code import is_users_file

_LARGEST = 1_000_000
"""Larger files are not read."""


class SourceTrees:
    """Trees by file, as code objects name it."""

    def __init__(self) -> None:
        self._trees: Dict[str, Optional[ast.Module]] = {}

    def tree(self, file: str) -> Optional[ast.Module]:
        """None where the file is not the user's own, or can't be read."""
        if not is_users_file(file):
            return None
        if file not in self._trees:
            self._trees[file] = _read(file)
        return self._trees[file]

    def function(self, code: CodeType) -> Any:
        """The definition of a function; None where it can't be found."""
        tree = self.tree(code.co_filename)
        found = () if tree is None else functions(tree)
        return next(
            (node for node in found if (node.name, first_line(node)) == (code.co_name, code.co_firstlineno)), None
        )

    def block(self, frame: FrameType) -> Any:
        """The definition of the function, or the module, whose code runs in a frame; None where it can't be found."""
        code = frame.f_code
        return self.tree(code.co_filename) if code.co_name == "<module>" else self.function(code)


def functions(tree: ast.AST) -> Iterator[Any]:
    """All functions that are defined in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def first_line(function: Any) -> int:
    """The line with which a function's code begins: that of its first decorator, if it has any."""
    return int(min([function.lineno, *(each.lineno for each in function.decorator_list)]))


def _read(file: str) -> Optional[ast.Module]:
    try:
        # Most of a notebook are its outputs.
        if os.path.getsize(file) > _LARGEST and not notebooks.is_notebook(file):
            return None
        with open(file, "rb") as handle:
            return ast.parse(notebooks.program_of(file, handle.read()).decode("utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
