"""The edit that has a sampler put rows of similar length into a DataLoader's batches: source text and a line in,
`ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_dataset import free_name, in_loop, may_have_lines_above, moved_out
from bottleneck_doctor.edits.loader_target import POSITIONS, loader_calls
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import Edit, SourceTree, code, constant, has_comment, put

NAME = "GroupedByLength"
DATASET_NAMES = ("dataset", "train_dataset", "rows", "train_rows")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
_INSTEAD = ("batch_size", "shuffle", "drop_last")
"""Arguments that the sampler is given in the place of the loader."""
_OTHERS = ("sampler", "batch_sampler", "generator")
"""Arguments that say in another way which rows come, or from which random numbers."""
Given = Mapping[str, cst.BaseExpression]


def grouped_rows_change(source: str, line: int, part: str) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a sampler of batches whose rows are of similar length.
    `part`: what of a sample is as long as its row, as code behind a sample. None where the call is not written so that
    this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or len(calls) != 1 or tree.says(NAME) or not _knows_torch(tree):
        return None
    call = calls[0]
    given = _given(call)
    if given is None or in_loop(tree, call) or has_comment(call):
        return None
    if any(name in given and constant(given[name]) != (None,) for name in _OTHERS) or not _shuffles(given):
        return None
    drop_last = constant(given["drop_last"]) if "drop_last" in given else (False,)
    if "dataset" not in given or "batch_size" not in given or drop_last not in ((True,), (False,)):
        return None
    dataset, above = code(given["dataset"]), dict[cst.CSTNode, list[str]]()
    edits: dict[cst.CSTNode, Edit] = {}
    if not isinstance(given["dataset"], (cst.Name, cst.Attribute)):
        named, statement = free_name(tree, DATASET_NAMES), tree.statement(call)
        if named is None or statement is None or not may_have_lines_above(tree, call):
            return None
        above[statement] = [f"{named} = {moved_out(tree, given['dataset'], call)}"]
        edits[given["dataset"]] = put(cst.Name(named))
        dataset = named
    sampler = cst.parse_expression(f"{NAME}({dataset}, {code(given['batch_size'])})")
    edits[call] = lambda made: _with_sampler(tree, made, call, sampler)
    return defined_above(tree, call, _sampler(tree, part, drop_last == (True,)), edits, above)


def _knows_torch(tree: SourceTree) -> bool:
    plain = [alias for node in tree.nodes(cst.Import) for alias in node.names if alias.asname is None]
    return any(alias.evaluated_name.split(".")[0] == "torch" for alias in plain)


def _given(call: cst.Call) -> Given | None:
    """The arguments by name; None where some are unpacked from elsewhere."""
    positional = [each.value for each in call.args if each.keyword is None]
    if any(each.star for each in call.args) or len(positional) > len(("dataset", "batch_size", "shuffle")):
        return None
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    return dict(zip(POSITIONS, positional, strict=False)) | named


def _shuffles(given: Given) -> bool:
    return "shuffle" in given and constant(given["shuffle"]) == (True,)


def _with_sampler(tree: SourceTree, made: cst.CSTNode, call: cst.Call, sampler: cst.BaseExpression) -> cst.CSTNode:
    assert isinstance(made, cst.Call)
    positional = sum(each.keyword is None for each in made.args)
    fewer = arguments.without(arguments.without_places(made, range(positional - 1, 0, -1)), _INSTEAD)
    return arguments.with_more(tree, fewer, {"batch_sampler": sampler}, place=call)


def _sampler(tree: SourceTree, part: str, drop_last: bool) -> Sequence[str]:
    indent, part = tree.module.default_indent, part.replace('"', tree.quote)
    counted = "len(self.lengths) // self.batch_size" if drop_last else "-(-len(self.lengths) // self.batch_size)"
    ends = "len(rows) - size + 1" if drop_last else "len(rows)"
    lines = [
        (0, f"class {NAME}(torch.utils.data.Sampler):"),
        (1, "def __init__(self, dataset, batch_size):"),
        (2, "self.batch_size = batch_size"),
        (2, f"self.lengths = [len(dataset[index]{part}) for index in range(len(dataset))]"),
        (0, ""),
        (1, "def __len__(self):"),
        (2, f"return {counted}"),
        (0, ""),
        (1, "def __iter__(self):"),
        (2, "order, size = torch.randperm(len(self.lengths)).tolist(), self.batch_size"),
        (2, "# Rows are sorted within so many that each epoch has other batches."),
        (2, "together = max(1, min(50, len(order) // (4 * size))) * size"),
        (2, "batches = []"),
        (2, "for first in range(0, len(order), together):"),
        (3, "rows = sorted(order[first : first + together], key=self.lengths.__getitem__)"),
        (3, f"batches += [rows[place : place + size] for place in range(0, {ends}, size)]"),
        (2, "for place in torch.randperm(len(batches)).tolist():"),
        (3, "yield batches[place]"),
        (0, ""),
        (0, ""),
    ]
    return [indent * depth + text for depth, text in lines]
