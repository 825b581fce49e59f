"""The edit that compiles nothing with torch any more: source text in, `ChangeText` or nothing out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.origin.follower import whole_name
from bottleneck_doctor.edits.removal import without
from bottleneck_doctor.edits.tree import (
    Edit,
    SourceTree,
    Statement,
    code,
    dotted,
    is_program,
    method_call,
    names_of,
    small,
)

COMPILE = "torch.compile"


def uncompiled_change(source: str) -> ChangeText | None:
    """Take out what compiles: `@torch.compile`, `torch.compile(model)` around a model, and `model.compile()` on a line
    of its own. What compiles in another way is named in the note. None where `source` compiles nothing that is seen.
    """
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    edits: dict[cst.CSTNode, Edit] = {}
    for decorator in tree.nodes(cst.Decorator):
        if _is_compile(tree, decorator.decorator):
            edits[decorator] = _nothing
    calls = [call for call in tree.nodes(cst.Call) if _is_compile(tree, call)]
    left = []
    for call in calls:
        if any(tree.holds(each, call) for each in edits) or _whole_statement(tree, call):
            continue
        if _compiled(call) is None:
            left.append(call)
        else:
            edits[call] = _inner
    lines = [tree.lines(each)[0] for each in (*edits, *calls, *_of_methods(tree))]
    if not lines:
        return None
    note = " ".join(f"Leave out `{COMPILE}` in line {tree.lines(call)[0]}." for call in left)
    edited = tree.edited(edits)
    rest = None if edited is None else SourceTree.parse(edited)
    if rest is None:
        return None
    # Statements go by their lines, which the edits before may have moved.
    whole = [each for call in rest.nodes(cst.Call) if (each := _whole_statement(rest, call)) is not None]
    edited = without(rest, [*whole, *_of_methods(rest)])
    return as_change(source, edited, min(lines), note) if is_program(edited) else None


def _nothing(node: cst.CSTNode) -> cst.RemovalSentinel:
    return cst.RemoveFromParent()


def _inner(node: cst.CSTNode) -> cst.CSTNode:
    compiled = _compiled(node)
    assert compiled is not None
    return compiled


def _is_compile(tree: SourceTree, node: cst.CSTNode) -> bool:
    """Whether this is `torch.compile`, or a call of it."""
    return whole_name(tree, dotted(node.func if isinstance(node, cst.Call) else node)) == COMPILE


def _compiled(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a call compiles; None where it is given by name or not at all."""
    first = node.args[0] if isinstance(node, cst.Call) and node.args else None
    return None if first is None or first.keyword is not None or first.star else first.value


def _whole_statement(tree: SourceTree, call: cst.Call) -> Statement | None:
    """The statement that is `model = torch.compile(model, …)` and nothing else, where this is its call."""
    compiled, statement = _compiled(call), tree.statement(call)
    inner = None if statement is None else small(statement)
    if not isinstance(inner, cst.Assign) or inner.value is not call or len(inner.targets) != 1 or compiled is None:
        return None
    same = code(inner.targets[0].target) == code(compiled)
    return statement if same and _is_compile(tree, call) else None


def _of_methods(tree: SourceTree) -> list[Statement]:
    """Lines that are `model.compile(…)` and nothing else. A module that is imported, such as `re`, compiles else."""
    modules = {
        alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
        for node in tree.nodes(cst.Import)
        for alias in names_of(node)
    }
    found: list[Statement] = []
    for statement in tree.nodes(cst.SimpleStatementLine):
        called = method_call(statement)
        if called is not None and called[1].attr.value == "compile" and code(called[1].value) not in modules:
            found.append(statement)
    return found
