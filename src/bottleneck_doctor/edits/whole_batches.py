"""The edit that has a DataLoader ask its dataset for whole batches: source text and a line in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.arguments import LONGEST_LINE
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import named_above
from bottleneck_doctor.edits.loader_target import Given, given_by_name, loader_calls
from bottleneck_doctor.edits.tree import Edit, SourceTree, code, constant, dotted, has_comment, names_of, put

REPLACED = frozenset({"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"})
"""Arguments that say which rows a batch holds: the sampler says so alone."""
MODULE = "torch.utils.data"


def whole_batches_change(source: str, line: int) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a sampler of batches, so that the same rows come in the
    same batches. None where the call is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or len(calls) != 1:
        return None
    call = calls[0]
    given, prefix = given_by_name(call), dotted(call.func).removesuffix("DataLoader")
    if given is None or "dataset" not in given or "collate_fn" in given or has_comment(call):
        return None
    if prefix and not prefix.endswith("."):
        return None  # Something else is called.
    written = {name: code(node) for name, node in given.items()}
    dataset, above = written["dataset"], {}
    if not isinstance(given["dataset"], (cst.Name, cst.Attribute)) and _needs_dataset(given):
        named = named_above(tree, call)
        if named is None:
            return None
        dataset, statement = named
        above = {statement: [f"{dataset} = {written['dataset']}"]}
    sampler = _sampler(given, written, dataset, prefix)
    if sampler is None:
        return None
    arguments = [dataset if above else written["dataset"], f"sampler={sampler}", "batch_size=None"]
    arguments += [f"{name}={value}" for name, value in written.items() if name not in REPLACED | {"dataset"}]
    edits: dict[cst.CSTNode, Edit] = {call: put(cst.parse_expression(_laid_out(tree, call, arguments)))}
    if not prefix:
        imported = _imported(tree, sampler)
        if imported is None:
            return None
        edits.update(imported)
    edited = tree.edited(edits, above)
    return None if edited is None else as_change(source, edited, tree.lines(call)[0], "")


def _is(node: cst.BaseExpression | None, *values: object) -> bool:
    return node is None or (isinstance(node, cst.Name) and any(constant(node) == (value,) for value in values))


def _needs_dataset(given: Given) -> bool:
    """Whether a sampler is made of the dataset: where none is given."""
    return _is(given.get("sampler"), None) and _is(given.get("batch_sampler"), None)


def _sampler(given: Given, written: dict[str, str], dataset: str, prefix: str) -> str | None:
    """The sampler of batches as it is written; None where the batches have no size."""
    if not _is(given.get("batch_sampler"), None):
        return written["batch_sampler"]
    if _is(given.get("batch_size"), None):
        return None
    if not _is(given.get("sampler"), None):
        rows = written["sampler"]
    else:
        generator = "" if _is(given.get("generator"), None) else f", generator={written['generator']}"
        shuffled, in_order = f"{prefix}RandomSampler({dataset}{generator})", f"{prefix}SequentialSampler({dataset})"
        shuffle = given.get("shuffle")
        if _is(shuffle, None, False):
            rows = in_order
        elif _is(shuffle, True):
            rows = shuffled
        else:
            rows = f"{shuffled} if {written['shuffle']} else {in_order}"
    drop_last = written.get("drop_last", "False")
    return f"{prefix}BatchSampler({rows}, batch_size={written['batch_size']}, drop_last={drop_last})"


def _laid_out(tree: SourceTree, call: cst.Call, arguments: list[str]) -> str:
    """The call with these arguments, on one line where it was and fits."""
    function = code(call.func)
    short = f"{function}({', '.join(arguments)})"
    (first, column), (last, end) = tree.place(call), tree.end(call)
    behind = tree.text_of_line(last)[end:]
    if first == last and column + len(short) + len(behind) <= LONGEST_LINE and "\n" not in short:
        return short
    lines = "".join(f"{tree.module.default_indent}{each},\n" for each in arguments)
    return f"{function}(\n{lines})"


def _imported(tree: SourceTree, sampler: str) -> dict[cst.CSTNode, Edit] | None:
    """What imports the names that the sampler needs, beside that of the DataLoader; None where that is not seen."""
    used = {name.value for name in tree.nodes(cst.Name, within=cst.parse_expression(sampler))}
    aliases = [(node, alias) for node in tree.nodes(cst.ImportFrom) for alias in names_of(node)]
    there = {alias.evaluated_name for _, alias in aliases if alias.asname is None}
    missing = sorted(used & {"BatchSampler", "RandomSampler", "SequentialSampler"} - there)
    if not missing:
        return {}
    for node, alias in aliases:
        if alias.evaluated_name == "DataLoader" and node.module is not None and dotted(node.module) == MODULE:
            return {node: lambda made: _with_names(made, missing)}
    return None


def _with_names(node: cst.CSTNode, names: list[str]) -> cst.CSTNode:
    assert isinstance(node, cst.ImportFrom)
    assert not isinstance(node.names, cst.ImportStar)
    *before, last = node.names
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    added = [cst.ImportAlias(cst.Name(name), comma=comma) for name in names]
    added[-1] = added[-1].with_changes(comma=last.comma)
    return node.with_changes(names=[*before, last.with_changes(comma=comma), *added])
