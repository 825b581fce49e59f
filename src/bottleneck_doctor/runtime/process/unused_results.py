"""Calls of what an object holds, of whose two results the second one is used or not. They are read from the source of
the object's class; nothing is run."""

from __future__ import annotations

import ast
from typing import Any, Collection, Dict, Iterator, List, NamedTuple

from .source_trees import SourceTrees
from .uses import functions_of

_READ_LOCALS = frozenset(("locals", "vars", "eval", "exec"))


class HeldCall(NamedTuple):
    """A call `self.<name>(...)` in a method. `file`: as the method's code names it. `second_used`: whether anything may
    read the second of the values that it returns."""

    name: str
    file: str
    node: ast.Call
    second_used: bool

    @property
    def lines(self) -> range:
        return range(self.node.lineno, (self.node.end_lineno or self.node.lineno) + 1)


def held_calls(trees: SourceTrees, kind: type, names: Collection[str]) -> List[HeldCall]:
    """The calls of an object's own attributes of these names, in the methods of its class that the user wrote."""
    found: List[HeldCall] = []
    for function in functions_of(kind):
        node = trees.function(function.__code__)
        if node is not None:
            found += _calls_in(node, function.__code__.co_filename, names)
    return found


def _calls_in(function: Any, file: str, names: Collection[str]) -> Iterator[HeldCall]:
    own = [*function.args.posonlyargs, *function.args.args]
    if not own:
        return
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        held = node.func.value
        if isinstance(held, ast.Name) and held.id == own[0].arg and node.func.attr in names:
            yield HeldCall(node.func.attr, file, node, not _only_first(node, parents, function))


def _only_first(call: ast.Call, parents: Dict[ast.AST, ast.AST], function: Any) -> bool:
    """Whether nothing reads more than the first of the values that a call returns."""
    above = parents[call]
    if _is_first_of(above, call):
        return True
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return False
    (target,) = above.targets
    if isinstance(target, ast.Name):  # Kept whole, of which only the first is taken.
        return all(_is_first_of(parents[each], each) for each in _read(function, target.id))
    if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
        second = target.elts[1]
        return isinstance(second, ast.Name) and not list(_read(function, second.id))
    return False


def _is_first_of(above: ast.AST, whole: ast.AST) -> bool:
    """Whether `above` is `whole[0]`."""
    return (
        isinstance(above, ast.Subscript)
        and above.value is whole
        and isinstance(above.ctx, ast.Load)
        and isinstance(above.slice, ast.Constant)
        and type(above.slice.value) is int
        and above.slice.value == 0
    )


def _read(function: Any, name: str) -> Iterator[ast.AST]:
    """Where a function may read a variable: by its name, or all of its variables."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in (name, *_READ_LOCALS):
            reads = isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.AugAssign):
            reads = isinstance(node.target, ast.Name) and node.target.id == name
        else:  # Whoever else reads a global, it is not seen here.
            reads = isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names
        if reads:
            yield node
