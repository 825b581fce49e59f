"""The edit that has a sampler put rows of similar length into a DataLoader's batches: source text and a line in,
`ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_dataset import in_loop, moved_out, named_above
from bottleneck_doctor.edits.loader_target import POSITIONS, Given, given_by_name, loader_calls
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import Edit, SourceTree, code, constant, has_comment, put

NAME = "GroupedByLength"
_INSTEAD = ("batch_size", "shuffle", "drop_last")
"""Arguments that the sampler is given in the place of the loader."""
_POSITIONS = POSITIONS[:3]
"""What a call may give without a name: the dataset, and what the sampler is given instead."""
_OTHERS = ("sampler", "batch_sampler", "generator")
"""Arguments that say in another way which rows come, or from which random numbers."""


def grouped_rows_change(source: str, line: int, part: str) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a sampler of batches whose rows are of similar length.
    `part`: what of a sample is as long as its row, as code behind a sample. None where the call is not written so that
    this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or len(calls) != 1 or tree.says(NAME) or tree.torch_name is None:
        return None
    call = calls[0]
    given = given_by_name(call)
    if given is None or _positional(call) > len(_POSITIONS) or in_loop(tree, call) or has_comment(call):
        return None
    if any(name in given and constant(given[name]) != (None,) for name in _OTHERS) or not _shuffles(given):
        return None
    drop_last = constant(given["drop_last"]) if "drop_last" in given else (False,)
    if "dataset" not in given or "batch_size" not in given or drop_last not in ((True,), (False,)):
        return None
    dataset, above = code(given["dataset"]), dict[cst.CSTNode, list[str]]()
    edits: dict[cst.CSTNode, Edit] = {}
    if not isinstance(given["dataset"], (cst.Name, cst.Attribute)):
        named = named_above(tree, call)
        if named is None:
            return None
        dataset, statement = named
        above[statement] = [f"{dataset} = {moved_out(tree, given['dataset'], call)}"]
        edits[given["dataset"]] = put(cst.Name(dataset))
    sampler = cst.parse_expression(f"{NAME}({dataset}, {code(given['batch_size'])})")
    edits[call] = lambda made: _with_sampler(tree, made, call, sampler)
    return defined_above(tree, call, _sampler(tree, part, drop_last == (True,)), edits, above)


def _positional(call: cst.Call) -> int:
    """How many arguments stand without a name."""
    return sum(each.keyword is None for each in call.args)


def _shuffles(given: Given) -> bool:
    return "shuffle" in given and constant(given["shuffle"]) == (True,)


def _with_sampler(tree: SourceTree, made: cst.CSTNode, call: cst.Call, sampler: cst.BaseExpression) -> cst.CSTNode:
    assert isinstance(made, cst.Call)
    fewer = arguments.without(arguments.without_places(made, range(_positional(made) - 1, 0, -1)), _INSTEAD)
    return arguments.with_more(tree, fewer, {"batch_sampler": sampler}, place=call)


def _sampler(tree: SourceTree, part: str, drop_last: bool) -> Sequence[str]:
    indent, torch, part = tree.module.default_indent, tree.torch_name, part.replace('"', tree.quote)
    counted = "len(self.lengths) // self.batch_size" if drop_last else "-(-len(self.lengths) // self.batch_size)"
    ends = "len(rows) - size + 1" if drop_last else "len(rows)"
    lines = [
        (0, f"class {NAME}({torch}.utils.data.Sampler):"),
        (1, "def __init__(self, dataset, batch_size):"),
        (2, "self.batch_size = batch_size"),
        (2, f"self.lengths = [len(dataset[index]{part}) for index in range(len(dataset))]"),
        (0, ""),
        (1, "def __len__(self):"),
        (2, f"return {counted}"),
        (0, ""),
        (1, "def __iter__(self):"),
        (2, f"order, size = {torch}.randperm(len(self.lengths)).tolist(), self.batch_size"),
        (2, "# Rows are sorted within so many that each epoch has other batches."),
        (2, "together = max(1, min(50, len(order) // (4 * size))) * size"),
        (2, "batches = []"),
        (2, "for first in range(0, len(order), together):"),
        (3, "rows = sorted(order[first : first + together], key=self.lengths.__getitem__)"),
        (3, f"batches += [rows[place : place + size] for place in range(0, {ends}, size)]"),
        (2, f"for place in {torch}.randperm(len(batches)).tolist():"),
        (3, "yield batches[place]"),
        (0, ""),
        (0, ""),
    ]
    return [indent * depth + text for depth, text in lines]
