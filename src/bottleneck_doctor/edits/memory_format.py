"""The edit that puts a model and its input into another memory format: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

import builtins
from dataclasses import replace

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import LOOPS, Edit, SourceTree, Statement, code, dotted, names_of, put, said


def memory_format_change(source: str, line: int, name: str, *, pictures: bool = True) -> ChangeText | None:
    """Put the model and what it is called with into `torch.<name>`.

    `line` is one of the call of the model. The input is put in order above that statement, and the model above the
    outermost loop around it in its function; where there is no loop, where the model is made is said in words. What
    another function has named is not assigned here: it would become a name of this function's own. `pictures`: whether
    the input has four dimensions, without which it can't be put in order. Returns None where it can't be seen what
    is called with what.
    """
    tree = SourceTree.parse(source)
    found = None if tree is None else called_model(tree, line)
    if tree is None or found is None:
        return None
    statement, model, given = found
    form = f".to(memory_format={tree.torch_name or 'torch'}.{name})"
    above: dict[Statement, list[str]] = {}
    edits: dict[cst.CSTNode, Edit] = {}
    if not pictures:
        pass  # The model makes its pictures itself, as of the points of a cloud.
    elif _is_bound(tree, statement, given.value):
        above[statement] = [f"{given.value} = {given.value}{form}"]
    else:
        edits[given] = put(cst.parse_expression(f"{given.value}{form}"))
    notes = []
    outer = outermost_loop(tree, statement, model)
    if outer is None:
        notes.append(f"And write `{model} = {model}{form}` where the model is made.")
    elif "." in model or _is_bound(tree, outer, model):
        above[outer] = [f"{model} = {model}{form}"]
    else:
        above[outer] = [f"{model}{form}"]  # A module is changed in its place.
    if tree.torch_name is None:
        notes.append("Import torch in this file.")
    edited = tree.edited(edits, above)
    if edited is None:
        return None
    return replace(as_change(source, edited, line, " ".join(notes)), unfinished=bool(notes))


def called_model(tree: SourceTree, line: int) -> tuple[Statement, str, cst.Name] | None:
    """The statement at `line`, the model that it calls, and with what; None where that can't be seen."""
    statement = tree.innermost(line)
    if not isinstance(statement, cst.SimpleStatementLine):
        return None
    no_models = _no_models(tree)
    calls = [call for call in tree.nodes(cst.Call, within=statement) if _may_be_model(call, no_models)]
    given = calls[0].args[0].value if len(calls) == 1 else None
    return (statement, said(calls[0].func), given) if isinstance(given, cst.Name) else None


def outermost_loop(tree: SourceTree, statement: Statement, model: str) -> Statement | None:
    """The outermost loop around a statement in which the model is not made, in its function. If that has no loop, and
    has the model from a function around it, it is the outermost one there."""
    found = None
    for each in tree.around(statement):
        if isinstance(each, cst.ClassDef):
            break
        if isinstance(each, cst.FunctionDef) and (found is not None or _is_bound(tree, each.body, _root(model))):
            break
        if isinstance(each, LOOPS) and not _assigns(tree, each, model):
            found = each
    return found


def _root(name: str) -> str:
    return name.partition(".")[0]


def _is_bound(tree: SourceTree, node: cst.CSTNode, name: str) -> bool:
    """Whether a name is one of the function's own in which a node stands, or of the module's outside of functions."""
    scope = tree.scope(node)
    return scope is not None and any(each.scope is scope for each in scope[name])


def _assigns(tree: SourceTree, loop: cst.CSTNode, name: str) -> bool:
    return any(code(each.target) == name for each in tree.nodes(cst.AssignTarget, within=loop))


def _no_models(tree: SourceTree) -> set[str]:
    """Names that are functions, classes or modules, and no model."""
    names = {"self", *dir(builtins), *(each.name.value for each in tree.nodes((cst.FunctionDef, cst.ClassDef)))}
    for node in tree.nodes((cst.Import, cst.ImportFrom)):
        for alias in names_of(node):
            names.add(alias.evaluated_alias or dotted(alias.name).partition(".")[0])
    return names


def _may_be_model(call: cst.Call, no_models: set[str]) -> bool:
    """`model(images)` or `self.net(batch)`; not `relu(x)`, `model(x.float())` or `trainer.fit(model)`."""
    first = call.args[:1]
    if not first or first[0].keyword is not None or first[0].star or not isinstance(first[0].value, cst.Name):
        return False
    name = dotted(call.func).removeprefix("self.")
    return bool(name) and "." not in name and name not in no_models
