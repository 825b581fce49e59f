"""Calls of what an object holds, of whose two results the second one is used or not. They are read from the source of
the object's class; nothing is run."""

from __future__ import annotations

import ast
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .source_trees import SourceTrees
from .uses import functions_of

_READ_LOCALS = frozenset(("locals", "vars", "eval", "exec"))


class HeldCall(NamedTuple):
    """A call of what `self.<attribute>` holds, in a method. `name`: the last name of what is called, as written.
    `file`: as the method's code names it. `second_used`: whether anything may read the second of the values that it
    returns."""

    attribute: str
    name: str
    file: str
    node: ast.Call
    second_used: bool

    @property
    def lines(self) -> range:
        return range(self.node.lineno, (self.node.end_lineno or self.node.lineno) + 1)


def held_calls(trees: SourceTrees, kind: type, names: Collection[str], lists: Collection[str] = ()) -> List[HeldCall]:
    """The calls of an object's own attributes of these names, in the methods of its class that the user wrote. `lists`:
    the names of attributes of which each item is called, by its place or in a loop over all."""
    found: List[HeldCall] = []
    for function in functions_of(kind):
        node = trees.function(function.__code__)
        if node is not None:
            found += _calls_in(node, function.__code__.co_filename, names, lists)
    return found


def _calls_in(function: Any, file: str, names: Collection[str], lists: Collection[str]) -> Iterator[HeldCall]:
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return
    own = arguments[0].arg
    items = _items(function, own)
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name):
            attribute, known = items.get(called.id), lists
        elif isinstance(called, ast.Subscript):
            attribute, known = _own_attribute(called.value, own), lists
        else:
            attribute, known = _own_attribute(called, own), names
        if attribute is not None and attribute in known:
            name = called.id if isinstance(called, ast.Name) else attribute
            yield HeldCall(attribute, name, file, node, not _only_first(node, parents, function))


def _own_attribute(node: ast.AST, own: str) -> Optional[str]:
    """The name of an attribute of the object itself; None for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
        return node.attr
    return None


def _items(function: Any, own: str) -> Dict[str, str]:
    """The variables that hold an item of an attribute, by name, and the attribute: those of loops over it, alone or
    with `enumerate` or `zip`, that are assigned nowhere else."""
    found: Dict[str, str] = {}
    written: List[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            written.append(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            written.append(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            written += 2 * node.names
        elif isinstance(node, (ast.For, ast.comprehension)):
            for target, source in _pairs(node.target, node.iter):
                attribute = _own_attribute(source, own)
                if attribute is not None and isinstance(target, ast.Name):
                    found[target.id] = attribute
    return {name: attribute for name, attribute in found.items() if written.count(name) == 1}


def _pairs(target: ast.AST, source: ast.AST) -> List[Tuple[ast.AST, ast.AST]]:
    """What a loop assigns each item to, and what the item is of."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name):
        return [(target, source)]
    if source.func.id not in ("enumerate", "zip") or not isinstance(target, (ast.Tuple, ast.List)):
        return []
    targets: List[ast.AST] = list(target.elts)
    if source.func.id == "enumerate":
        return _pairs(targets[1], source.args[0]) if len(targets) == 2 and source.args else []
    plain = len(targets) == len(source.args) and not any(isinstance(each, ast.Starred) for each in source.args)
    return list(zip(targets, source.args)) if plain else []


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
