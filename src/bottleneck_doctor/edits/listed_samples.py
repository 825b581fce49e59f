"""The edit that gives a DataLoader a list of all samples of its dataset: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.dataset_attributes import asked_of_dataset, in_its_place
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import (
    argument_of,
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
from bottleneck_doctor.edits.tree import Edit, SourceTree, Statement, code, dotted, last_name, put
from bottleneck_doctor.runtime.wire.messages import Taker

LIST_NAMES = ("samples", "train_samples", "prepared_samples")
"""Names for the list."""
DATASET_NAMES = ("dataset", "train_dataset", "samples_once")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
INDEX_NAMES = ("index", "i", "place")
NAME = "ListedSamples"
_OWN = frozenset({"dataset", "samples"})
"""What the class itself has by name."""
_DEFINITION = f'''class {NAME}:
    """All samples of a dataset, each prepared once."""

    def __init__(self, dataset):
        self.samples = [dataset[index] for index in range(len(dataset))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]'''
_OF_ALL = "A `Subset` of all samples makes a dataset of the list: a library may take a list for something else."


def listed_samples_change(source: str, line: int) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a list of the samples of its dataset, or a dataset that has
    one where the program asks the loader's dataset for more than samples. None where the call is not written so that
    this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else dataset_calls(tree, line)
    if tree is None or len(calls) != 1:
        return None
    call = calls[0]
    asked = asked_of_dataset(tree, _OWN)
    if asked is None or in_loop(tree, call):
        return None
    given = dataset_of(call)
    if given is None:
        return _unpacked(source, tree, call, asked)
    only_if = is_given_if(given)
    given = only_if or given
    if asked:
        return _by_a_class(tree, call, asked, {given: put(_made_of(given))})
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
    if given is None or in_loop(tree, call) or not may_have_lines_above(tree, call):
        return None
    if asked_of_dataset(tree, _OWN) != []:
        return None  # It may know a dataset by torch's class, so a class that answers as the dataset does would not do.
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


def _made_of(given: cst.BaseExpression) -> cst.Call:
    return cst.Call(cst.Name(NAME), [cst.Arg(given)])


def _by_a_class(
    tree: SourceTree, call: cst.Call, asked: Sequence[str], edits: Mapping[cst.CSTNode, Edit]
) -> ChangeText | None:
    """The edits, and a class that has the list and what is `asked` of the dataset."""
    if tree.says(NAME):
        return None
    return in_its_place(tree, call, _DEFINITION.split("\n"), asked, edits)


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


def _unpacked(source: str, tree: SourceTree, call: cst.Call, asked: Sequence[str]) -> ChangeText | None:
    """The same where the call has its dataset from `**options`."""
    unpacked, statement = unpacked_dataset(tree, call), tree.statement(call)
    if unpacked is None:
        return None
    if asked:
        made = _made_of(cst.parse_expression(unpacked.dataset(tree)))
        return _by_a_class(tree, call, asked, unpacked.gives(tree, made))
    if statement is None or not may_have_lines_above(tree, call):
        return None
    samples, dataset = free_name(tree, LIST_NAMES), free_name(tree, DATASET_NAMES)
    if samples is None or dataset is None:
        return None
    lines = [f"{dataset} = {unpacked.dataset(tree)}", f"{samples} = {_list(dataset, INDEX_NAMES[0])}"]
    edited = tree.edited(unpacked.gives(tree, cst.Name(samples)), {statement: lines})
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def _list(dataset: str, index: str) -> str:
    return f"[{dataset}[{index}] for {index} in range(len({dataset}))]"
