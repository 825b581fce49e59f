"""The edit that gives a DataLoader a list of all samples of its dataset: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import (
    asks_dataset,
    dataset_calls,
    dataset_of,
    free_name,
    in_loop,
    is_given_if,
    may_have_lines_above,
    moved_out,
    unpacked_dataset,
)
from bottleneck_doctor.edits.tree import SourceTree, code, dotted, put

LIST_NAMES = ("samples", "train_samples", "prepared_samples")
"""Names for the list."""
DATASET_NAMES = ("dataset", "train_dataset", "samples_once")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
INDEX_NAMES = ("index", "i", "place")


def listed_samples_change(source: str, line: int) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a list of the samples of its dataset. None where the call
    is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else dataset_calls(tree, line)
    if tree is None or len(calls) != 1:
        return None
    call = calls[0]
    if in_loop(tree, call) or asks_dataset(tree):
        return None
    given = dataset_of(call)
    if given is None:
        return _unpacked(source, tree, call)
    only_if = is_given_if(given)
    given = only_if or given
    if dotted(given) in LIST_NAMES:
        return None
    # It is a name of the list's own, so it hides only what the dataset itself is called by.
    within = {name.value for name in tree.nodes(cst.Name, within=given)}
    index = next((name for name in INDEX_NAMES if name not in within), None)
    if index is None:
        return None
    named = isinstance(given, (cst.Name, cst.Attribute, cst.Subscript)) and "(" not in code(given)
    statement = tree.statement(call)
    lines: list[str] = []
    if only_if is None and may_have_lines_above(tree, call):
        free = free_name(tree, LIST_NAMES)
        dataset = code(given) if named else free_name(tree, DATASET_NAMES)
        if free is None or dataset is None:
            return None
        lines = [] if named else [f"{dataset} = {moved_out(tree, given, call)}"]
        lines.append(f"{free} = {_list(dataset, index)}")
        instead = free
    elif named:
        instead = _list(code(given), index)
    else:
        return None
    if "\n" in instead or len(instead) > LONGEST_LINE:
        return None
    above = {statement: lines} if lines else None
    edited = tree.edited({given: put(cst.parse_expression(instead))}, above)
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def _unpacked(source: str, tree: SourceTree, call: cst.Call) -> ChangeText | None:
    """The same where the call has its dataset from `**options`."""
    unpacked, statement = unpacked_dataset(tree, call), tree.statement(call)
    if unpacked is None or statement is None or not may_have_lines_above(tree, call):
        return None
    samples, dataset = free_name(tree, LIST_NAMES), free_name(tree, DATASET_NAMES)
    if samples is None or dataset is None:
        return None
    lines = [f"{dataset} = {unpacked.dataset(tree)}", f"{samples} = {_list(dataset, INDEX_NAMES[0])}"]
    edited = tree.edited(unpacked.gives(tree, cst.Name(samples)), {statement: lines})
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def _list(dataset: str, index: str) -> str:
    return f"[{dataset}[{index}] for {index} in range(len({dataset}))]"
