"""The edit that gives a DataLoader a list of all samples of its dataset: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import (
    argument_of,
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
from bottleneck_doctor.edits.module_level import with_import
from bottleneck_doctor.edits.tree import SourceTree, Statement, code, dotted, last_name, put
from bottleneck_doctor.runtime.wire.messages import Taker

LIST_NAMES = ("samples", "train_samples", "prepared_samples")
"""Names for the list."""
DATASET_NAMES = ("dataset", "train_dataset", "samples_once")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
INDEX_NAMES = ("index", "i", "place")
_OF_ALL = "A `Subset` of all samples makes a dataset of the list: a library may take a list for something else."


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
    lines: list[str] = []
    if only_if is None and may_have_lines_above(tree, call):
        named = _named_above(tree, call, given)
        if named is None:
            return None
        instead, lines = named
    else:
        index = _index(tree, given)
        if index is None or not _is_name(given):
            return None
        instead = _list(code(given), index)
    if "\n" in instead or len(instead) > LONGEST_LINE:
        return None
    above = {tree.statement(call): lines} if lines else None
    edited = tree.edited({given: put(cst.parse_expression(instead))}, above)
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def given_samples_change(source: str, line: int, called: str, taker: Taker) -> ChangeText | None:
    """The same where a library makes the loader of the dataset that it is given: by the call on `line` of what is
    `called` so, as `taker` has it. It may take a list for something else, so it gets a dataset of one."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else [each for each in tree.called_from(line) if last_name(each.func) == called]
    if tree is None or len(calls) != 1:
        return None
    call = calls[0]
    given, statement = argument_of(call, taker), tree.statement(call)
    if given is None or in_loop(tree, call) or asks_dataset(tree) or not may_have_lines_above(tree, call):
        return None
    named = _named_above(tree, call, given)
    if named is None or statement is None:
        return None
    samples, lines = named
    above: dict[Statement, list[str]] = {statement: lines}
    torch = tree.torch_name or "torch"
    if tree.torch_name is None:
        above = with_import(tree, torch, above)
    instead = f"{torch}.utils.data.Subset({samples}, range(len({samples})))"
    edited = tree.edited({given: put(cst.parse_expression(instead))}, above)
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], _OF_ALL)


def _named_above(tree: SourceTree, call: cst.Call, given: cst.BaseExpression) -> tuple[str, list[str]] | None:
    """A name for the list, and the lines above the call's statement that make it; None where they can't be written."""
    index, samples = _index(tree, given), free_name(tree, LIST_NAMES)
    dataset = code(given) if _is_name(given) else free_name(tree, DATASET_NAMES)
    if index is None or samples is None or dataset is None:
        return None
    lines = [] if _is_name(given) else [f"{dataset} = {moved_out(tree, given, call)}"]
    return samples, [*lines, f"{samples} = {_list(dataset, index)}"]


def _is_name(given: cst.BaseExpression) -> bool:
    """Whether what is given can be written twice."""
    return isinstance(given, (cst.Name, cst.Attribute, cst.Subscript)) and "(" not in code(given)


def _index(tree: SourceTree, given: cst.BaseExpression) -> str | None:
    """What an index is called in the list. It is a name of the list's own, so it hides only what the dataset itself is
    called by."""
    within = {name.value for name in tree.nodes(cst.Name, within=given)}
    return next((name for name in INDEX_NAMES if name not in within), None)


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
