"""Which calls of a training loop copy tensors to a device and let the host wait for that, by their source."""

from __future__ import annotations

import ast
from typing import Any, Iterator, List, Optional

from ..process.source_trees import functions

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TYPES = ("float", "half", "bfloat", "double", "int", "long", "uint", "bool", "short", "complex")
"""How the names of torch's types begin. A call that names a type alone copies to no device."""
_BEFORE_WAITING = {"to": 2, "cuda": 1}
"""Arguments without a name in front of that which says whether to wait."""


def waiting_copies(block: ast.AST, line: int, tree: ast.Module) -> List[ast.Call]:
    """The calls of `to` and `cuda` in the innermost loop of `block`, a function or module, that `line` is in, and in
    the functions of the same file that the loop calls by their names. Without those that say whether they wait."""
    loop = _innermost(block, line)
    if loop is None:
        return []
    called = {_name(each.func) for each in _calls(loop)}
    parts = [loop, *(each for each in functions(tree) if each.name in called)]
    found = {id(each): each for part in parts for each in _calls(part) if _waits(each)}
    return sorted(found.values(), key=lambda each: (each.lineno, each.col_offset))


def _innermost(block: ast.AST, line: int) -> Optional[Any]:
    around = [each for each in ast.walk(block) if isinstance(each, _LOOPS) and _covers(each, line)]
    return max(around, key=lambda each: each.lineno, default=None)


def _covers(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))


def _calls(block: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(block) if isinstance(each, ast.Call))


def _name(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _waits(call: ast.Call) -> bool:
    name = _name(call.func) if isinstance(call.func, ast.Attribute) else ""
    if len(call.args) > _BEFORE_WAITING.get(name, -1):
        return False
    named = {each.arg for each in call.keywords}
    if "non_blocking" in named or None in named or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    if name == "cuda" or "device" in named:
        return True
    return bool(call.args) and not _is_type(call.args[0])


def _is_type(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and _name(value.value) == "torch" and value.attr.startswith(_TYPES)
