"""The edit that puts lines before the training loop: source text and a line of the loop in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.module_level import with_import
from bottleneck_doctor.edits.tree import LOOPS, SCOPES, SourceTree, Statement, dotted


def before_loop_change(source: str, line: int, lines: Sequence[str], module: str) -> ChangeText | None:
    """Put `lines` before the outermost loop around `line`, and `import module` at the top where it is not there.

    None where it is not certain that the loop is entered once, after everything was made: in a function that makes
    neither the optimizer nor a loader, which may be called for every epoch.
    """
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    function = next((each for each in reversed(tree.nodes(cst.FunctionDef)) if tree.covers(each, line)), None)
    loops = [each for each in tree.nodes(LOOPS) if tree.covers(each, line) and _scope(tree, each) is function]
    if not loops or (function is not None and not _makes_all(tree, function, loops[0])):
        return None
    above: dict[Statement, list[str]] = {loops[0]: list(lines)}
    if not _is_imported(tree, module):
        above = with_import(tree, module, above)
    edited = tree.edited({}, above)
    return None if edited is None else as_change(source, edited, tree.lines(loops[0])[0], "")


def _scope(tree: SourceTree, node: cst.CSTNode) -> cst.CSTNode | None:
    """The innermost function or class around a node."""
    return next((each for each in tree.around(node) if isinstance(each, SCOPES)), None)


def _makes_all(tree: SourceTree, function: cst.FunctionDef, loop: Statement) -> bool:
    """Whether a function makes an optimizer or a loader before the loop: what is called for every epoch makes none."""
    before = [
        name.value
        for name in tree.nodes(cst.Name, within=function.body)
        if tree.end(name) < tree.place(loop) and _scope(tree, name) is function
    ]
    return any(name == "parameters" or name.endswith("DataLoader") for name in before)


def _is_imported(tree: SourceTree, module: str) -> bool:
    return any(
        dotted(alias.name) == module and alias.asname is None
        for node in tree.nodes(cst.Import)
        if _scope(tree, node) is None
        for alias in node.names
    )
