"""The edit that gives a DataLoader a list of all samples of its dataset: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import asks_dataset, dataset_of, in_loop
from bottleneck_doctor.edits.loader_target import loader_calls
from bottleneck_doctor.edits.tree import SourceTree, code, dotted, put

LIST_NAMES = ("samples", "train_samples", "prepared_samples")
"""Names for the list."""
DATASET_NAMES = ("dataset", "train_dataset", "samples_once")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
INDEX_NAMES = ("index", "i", "place")
_APART = (cst.Lambda, cst.CompFor, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.IfExp)
"""In these, a line above the statement would run at another time than the call, or without its names."""


def listed_samples_change(source: str, line: int) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a list of the samples of its dataset. None where the call
    is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or len(calls) != 1:
        return None
    call = calls[0]
    given = dataset_of(call)
    if given is None or dotted(given) in LIST_NAMES or in_loop(tree, call) or asks_dataset(tree):
        return None
    # It is a name of the list's own, so it hides only what the dataset itself is called by.
    within = {name.value for name in tree.nodes(cst.Name, within=given)}
    index = next((name for name in INDEX_NAMES if name not in within), None)
    if index is None:
        return None
    named = isinstance(given, (cst.Name, cst.Attribute, cst.Subscript)) and "(" not in code(given)
    statement = tree.statement(call)
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    lines: list[str] = []
    if alone and not any(isinstance(each, _APART) for each in _inside(tree, call)):
        free = [name for name in LIST_NAMES if not tree.says(name)]
        dataset = code(given) if named else next((name for name in DATASET_NAMES if not tree.says(name)), None)
        if not free or dataset is None:
            return None
        lines = [] if named else [f"{dataset} = {_moved_out(tree, given, call)}"]
        lines.append(f"{free[0]} = {_list(dataset, index)}")
        instead = free[0]
    elif named:
        instead = _list(code(given), index)
    else:
        return None
    if "\n" in instead or len(instead) > LONGEST_LINE:
        return None
    above = {statement: lines} if lines else None
    edited = tree.edited({given: put(cst.parse_expression(instead))}, above)
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def _inside(tree: SourceTree, call: cst.Call) -> list[cst.CSTNode]:
    """What the call is a part of, within its statement."""
    statement, inside = tree.statement(call), []
    for each in tree.around(call):
        if each is statement:
            break
        inside.append(each)
    return inside


def _moved_out(tree: SourceTree, given: cst.BaseExpression, call: cst.Call) -> str:
    """What makes the dataset, with lines that are indented as if it stood where its statement does."""
    text, (line, column) = code(given), tree.place(given)
    statement = tree.statement(call)
    further = column - (0 if statement is None else tree.place(statement)[1])
    alone = not tree.text_of_line(line)[:column].strip()
    if not alone or '"""' in text or "'''" in text:
        return text
    first, *others = text.split("\n")
    return "\n".join([first, *(each[min(further, len(each) - len(each.lstrip(" "))) :] for each in others)])


def _list(dataset: str, index: str) -> str:
    return f"[{dataset}[{index}] for {index} in range(len({dataset}))]"
