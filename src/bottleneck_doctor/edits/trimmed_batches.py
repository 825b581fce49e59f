"""The edit that cuts a DataLoader's batches to their longest row: source text and a line in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_target import POSITIONS, loader_calls
from bottleneck_doctor.edits.tree import SCOPES, Edit, SourceTree, code, dotted, is_program, names_of, put

NAME = "to_longest"
DEFAULT = "torch.utils.data.default_collate"
COLLATE = "collate_fn"
_LINES = re.compile(r"(?<=\n)")


def trimmed_batches_change(source: str, line: int, names: Sequence[str]) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a collate function that cuts the tensors of these names to
    the longest row of the batch. The function stands at the top of the module, where workers that are spawned find it.
    None where the call is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or len(calls) != 1 or not names or tree.says(NAME):
        return None
    call = calls[0]
    if any(each.star for each in call.args) or sum(each.keyword is None for each in call.args) > POSITIONS.index(
        COLLATE
    ):
        return None
    given = next((each for each in call.args if arguments.name_of(each) == COLLATE), None)
    collate = _collate(tree, None if given is None or code(given.value) == "None" else given.value)
    top = next((each for each in (call, *tree.around(call)) if each in tree.module.body), None)
    if collate is None or top is None:
        return None
    name = put(cst.Name(NAME))
    edits: dict[cst.CSTNode, Edit] = {}
    if given is not None:
        edits[given.value] = name
    else:
        edits[call] = lambda made: _given(tree, made, call)
    edited = tree.edited(edits)
    if edited is None:
        return None
    lines = _LINES.split(edited)
    place = tree.place(top)[0] - 1
    while place and lines[place - 1].startswith(("@", "#")):
        place -= 1
    end = tree.module.default_newline
    whole = "".join([*lines[:place], *(each + end for each in _function(tree, collate, names)), *lines[place:]])
    return as_change(source, whole, tree.lines(call)[0], "") if is_program(whole) else None


def _collate(tree: SourceTree, given: cst.BaseExpression | None) -> str | None:
    """What makes a batch as it is now, as it can be written at the top of the module; None where that is not seen."""
    if given is None:
        plain = [alias for node in tree.nodes(cst.Import) for alias in node.names if alias.asname is None]
        return DEFAULT if any(alias.evaluated_name.split(".")[0] == "torch" for alias in plain) else None
    text = dotted(given)
    return text if text and text.split(".")[0] in _of_the_module(tree) else None


def _of_the_module(tree: SourceTree) -> set[str]:
    """Names of functions, classes and imports of the module itself."""
    made = {each.name.value for each in tree.module.body if isinstance(each, SCOPES)}
    plain = [each for line in tree.module.body if isinstance(line, cst.SimpleStatementLine) for each in line.body]
    for each in plain:
        if isinstance(each, cst.ImportFrom):
            made |= {alias.evaluated_alias or alias.evaluated_name for alias in names_of(each)}
        elif isinstance(each, cst.Import):
            made |= {(alias.evaluated_alias or alias.evaluated_name).split(".")[0] for alias in each.names}
    return made


def _given(tree: SourceTree, made: cst.CSTNode, call: cst.Call) -> cst.CSTNode:
    assert isinstance(made, cst.Call)
    return arguments.with_more(tree, made, {COLLATE: cst.Name(NAME)}, place=call)


def _function(tree: SourceTree, collate: str, names: Sequence[str]) -> list[str]:
    indent, quote = tree.module.default_indent, tree.quote
    listed = ", ".join(f"{quote}{name}{quote}" for name in names)
    mask = f"{quote}attention_mask{quote}"
    return [
        f"def {NAME}(rows):",
        f"{indent}batch = {collate}(rows)",
        f"{indent}longest = int(batch[{mask}].any(0).nonzero().max()) + 1",
        f"{indent}for name in ({listed}{',' if len(names) == 1 else ''}):",
        f"{indent}{indent}batch[name] = batch[name][:, :longest].contiguous()",
        f"{indent}return batch",
        "",
        "",
    ]
