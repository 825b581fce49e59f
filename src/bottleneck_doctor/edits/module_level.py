"""What a module defines, and edits that need a function or a class of their own in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import SCOPES, Edit, SourceTree, Statement, is_program, names_of

_LINES = re.compile(r"(?<=\n)")


def of_the_module(tree: SourceTree) -> set[str]:
    """Names of functions, classes and imports of the module itself."""
    made = {each.name.value for each in tree.module.body if isinstance(each, SCOPES)}
    plain = [each for line in tree.module.body if isinstance(line, cst.SimpleStatementLine) for each in line.body]
    for each in plain:
        if isinstance(each, cst.ImportFrom):
            made |= {alias.evaluated_alias or alias.evaluated_name for alias in names_of(each)}
        elif isinstance(each, cst.Import):
            made |= {(alias.evaluated_alias or alias.evaluated_name).split(".")[0] for alias in each.names}
    return made


def with_import(tree: SourceTree, module: str, above: Mapping[Statement, list[str]]) -> dict[Statement, list[str]]:
    """Lines that are to stand `above` statements, and `import module` at the top of the file."""
    top = _first_import(tree) or tree.first_statement
    assert top is not None
    return {**above, top: [f"import {module}", *above.get(top, ())]}


def _first_import(tree: SourceTree) -> Statement | None:
    """The first import of the module that is none from `__future__`."""
    first = tree.first_statement
    body = tree.block(tree.module)
    behind = body[body.index(first) :] if first is not None else []
    return next((each for each in behind if _imports(each)), None)


def _imports(statement: Statement) -> bool:
    inside = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return any(isinstance(each, (cst.Import, cst.ImportFrom)) for each in inside)


def defined_above(
    tree: SourceTree,
    node: cst.CSTNode,
    lines: Sequence[str],
    edits: Mapping[cst.CSTNode, Edit],
    above: Mapping[cst.CSTNode, list[str]] | None = None,
) -> ChangeText | None:
    """The edits, and `lines` that define what they need. These stand at the top of the module, above what holds `node`,
    where workers that are spawned find them. `above`: lines that stand right above the statement that holds `node`.
    None where what comes out is no program."""
    top = next((each for each in (node, *tree.around(node)) if each in tree.module.body), None)
    edited = None if top is None else tree.edited(edits, above)
    if top is None or edited is None:
        return None
    split = _LINES.split(edited)
    place = tree.place(top)[0] - 1 + _moved(tree, edits, top)
    while place and split[place - 1].startswith(("@", "#")):
        place -= 1
    end = tree.module.default_newline
    apart = ["", ""] if place and split[place - 1].strip() else []
    whole = "".join([*split[:place], *(each + end for each in [*apart, *lines]), *split[place:]])
    return as_change(tree.source, whole, tree.lines(node)[0], "") if is_program(whole) else None


def _moved(tree: SourceTree, edits: Mapping[cst.CSTNode, Edit], top: cst.CSTNode) -> int:
    """By how many lines edits that lie above a statement move it."""
    above = {node: edit for node, edit in edits.items() if tree.lines(node)[1] < tree.lines(top)[0]}
    edited = tree.edited(above) if above else None
    return 0 if edited is None else edited.count("\n") - tree.source.count("\n")
