"""Which names statements read and change, as far as their text says. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.tree import SourceTree, Statement


def changed(tree: SourceTree, statements: Sequence[Statement]) -> set[str]:
    """Names whose values statements may change: what they assign to, and all that stands in lines which are nothing but
    an expression, such as `losses.append(loss)`."""
    found: set[str] = set()
    for statement in statements:
        for made in tree.nodes((cst.AssignTarget, cst.AnnAssign, cst.AugAssign), statement):
            found |= names(tree, made.target)
        for bound in tree.nodes((cst.For, cst.NamedExpr), statement):
            found |= names(tree, bound.target)
        for node in tree.nodes((cst.AsName, cst.Expr), statement):
            found |= names(tree, node)
    return found


def names(tree: SourceTree, node: cst.CSTNode) -> set[str]:
    return {name.value for name in tree.nodes(cst.Name, node)}
