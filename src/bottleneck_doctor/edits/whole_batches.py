"""The edit that has a DataLoader ask its dataset for whole batches: source text and a line in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

import ast
import tokenize

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_call import LONGEST_LINE, POSITIONS, loader_calls
from bottleneck_doctor.edits.source import SourceText

REPLACED = frozenset({"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"})
"""Arguments that say which rows a batch holds: the sampler says so alone."""
DATASET_NAMES = ("dataset", "train_dataset", "rows", "train_rows")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
MODULE = "torch.utils.data"


def whole_batches_change(source: str, line: int) -> ChangeText | None:
    """Give the loader made on `line` (any line of the call) a sampler of batches, so that the same rows come in the
    same batches. None where the call is not written so that this is certain."""
    text = SourceText.parse(source)
    calls = [] if text is None else loader_calls(text.tree, line)
    if text is None or len(calls) != 1:
        return None
    call = calls[0]
    given = _given(call)
    start, end = text.span(call)
    commented = any(each.type == tokenize.COMMENT and start <= text.at(each.start) < end for each in text.tokens)
    if given is None or "dataset" not in given or "collate_fn" in given or commented:
        return None
    prefix = _prefix(call)
    if prefix is None:
        return None
    written = {name: source[slice(*text.span(node))] for name, node in given.items()}
    dataset, named = written["dataset"], ""
    if not isinstance(given["dataset"], ast.Name | ast.Attribute) and _needs_dataset(given):
        named = next((name for name in DATASET_NAMES if name not in _names(text.tree)), "")
        if not named:
            return None
        dataset = named
    sampler, used = _sampler(given, written, dataset, prefix)
    if sampler is None:
        return None
    arguments = [named or written["dataset"], f"sampler={sampler}", "batch_size=None"]
    arguments += [f"{name}={value}" for name, value in written.items() if name not in REPLACED | {"dataset"}]
    edits = [(start, end, _call_text(text, call, arguments))]
    if named:
        before = _before(text, call, f"{named} = {written['dataset']}")
        if before is None:
            return None
        edits.append(before)
    if not prefix:
        imported = _import(text, used)
        if imported is None:
            return None
        edits += imported
    edited = source
    for begin, stop, new in sorted(edits, reverse=True):
        edited = edited[:begin] + new + edited[stop:]
    return None if SourceText.parse(edited) is None else as_change(source, edited, call.lineno, "")


def _given(call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments by name; None where some are unpacked from elsewhere."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    if len(call.args) > len(POSITIONS):
        return None
    given = dict(zip(POSITIONS, call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg is not None}


def _prefix(call: ast.Call) -> str | None:
    """What stands before `DataLoader` in the call, with its dot; None where something else is called."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "DataLoader":
        return ""
    if isinstance(function, ast.Attribute) and function.attr == "DataLoader":
        return f"{ast.unparse(function.value)}."
    return None


def _is(node: ast.expr | None, *values: object) -> bool:
    return node is None or (isinstance(node, ast.Constant) and any(node.value is value for value in values))


def _needs_dataset(given: dict[str, ast.expr]) -> bool:
    """Whether a sampler is made of the dataset: where none is given."""
    return _is(given.get("sampler"), None) and _is(given.get("batch_sampler"), None)


def _sampler(
    given: dict[str, ast.expr], written: dict[str, str], dataset: str, prefix: str
) -> tuple[str | None, set[str]]:
    """The sampler of batches as it is written, None where the batches have no size, and the names that it uses."""
    if not _is(given.get("batch_sampler"), None):
        return written["batch_sampler"], set()
    if _is(given.get("batch_size"), None):
        return None, set()
    used = {"BatchSampler"}
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
        used |= {name for name in ("RandomSampler", "SequentialSampler") if f"{name}(" in rows}
    drop_last = written.get("drop_last", "False")
    return f"{prefix}BatchSampler({rows}, batch_size={written['batch_size']}, drop_last={drop_last})", used


def _names(tree: ast.Module) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return names | {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _call_text(text: SourceText, call: ast.Call, arguments: list[str]) -> str:
    """The call with these arguments, on one line where it was and fits."""
    function = text.source[slice(*text.span(call.func))]
    short = f"{function}({', '.join(arguments)})"
    start, end = text.span(call)
    before = text.before(start)
    eol = text.source.find("\n", end)
    behind = text.source[end : eol if eol > -1 else len(text.source)].rstrip("\r")
    if call.lineno == call.end_lineno and len(before + short + behind) <= LONGEST_LINE and "\n" not in short:
        return short
    indent = before[: len(before) - len(before.lstrip())]
    lines = "".join(f"{indent}{text.unit}{each},{text.newline}" for each in arguments)
    return f"{function}({text.newline}{lines}{indent})"


def _before(text: SourceText, call: ast.Call, line: str) -> tuple[int, int, str] | None:
    """A line before the statement that holds the call."""
    holding = [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, ast.stmt) and any(each is call for each in ast.walk(node))
    ]
    statement = holding[-1]  # Breadth first: the last lies deepest.
    indent = text.indent(statement)
    if indent is None:
        return None
    begin = text.starts[statement.lineno - 1]
    return begin, begin, f"{indent}{line}{text.newline}"


def _import(text: SourceText, used: set[str]) -> list[tuple[int, int, str]] | None:
    """What imports the names that are not there yet, beside that of the DataLoader; None where that is not seen."""
    imports = [node for node in ast.walk(text.tree) if isinstance(node, ast.ImportFrom)]
    there = {alias.name for node in imports for alias in node.names if alias.asname is None}
    missing = sorted(used - there)
    if not missing:
        return []
    for node in imports:
        if node.module == MODULE and any(alias.name == "DataLoader" for alias in node.names):
            last = node.names[-1]
            end = text.offset(last.end_lineno or last.lineno, last.end_col_offset or 0)
            return [(end, end, ", " + ", ".join(missing))]
    return None
