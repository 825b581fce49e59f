"""Which names statements read and change, as far as their text says. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.tree import SourceTree, Statement


def changed(tree: SourceTree, statement: Statement) -> set[str]:
    """Names whose values a statement may change: what it assigns to, and on what it calls a method for nothing but its
    effect, such as the `losses` of `losses.append(loss)`. `self` is not one: too much is called on it."""
    found: set[str] = set()
    for made in tree.nodes((cst.AssignTarget, cst.AnnAssign, cst.AugAssign), statement):
        found |= names(tree, made.target)
    for bound in tree.nodes((cst.For, cst.NamedExpr), statement):
        found |= names(tree, bound.target)
    for given in tree.nodes(cst.AsName, statement):
        found |= names(tree, given)
    for line in tree.nodes(cst.Expr, statement):
        if isinstance(line.value, cst.Call) and isinstance(line.value.func, cst.Attribute):
            found |= names(tree, line.value.func.value)
    return found - {"self"}


def until_used(tree: SourceTree, statements: Sequence[Statement], user: cst.CSTNode) -> list[Statement]:
    """The statements up to the last that changes something of what `user` names; all where none is seen to."""
    wanted = names(tree, user)
    last = max((number for number, each in enumerate(statements, 1) if changed(tree, each) & wanted), default=None)
    return list(statements[:last])


def names(tree: SourceTree, node: cst.CSTNode) -> set[str]:
    """All names that stand in a node, behind a dot or not."""
    return {name.value for name in tree.nodes(cst.Name, node)}
