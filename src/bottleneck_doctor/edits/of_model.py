"""The edit that calls a method of the model once, before its loop: source text and a line in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.memory_format import called_model, outermost_loop
from bottleneck_doctor.edits.tree import SourceTree


def of_model_change(source: str, line: int, call: str) -> ChangeText | None:
    """Write `<model>.<call>` above the outermost loop around `line`, which calls the model; where there is no loop, the
    note says where. Returns None where it can't be seen which call is that of the model."""
    tree = SourceTree.parse(source)
    found = None if tree is None else called_model(tree, line)
    if tree is None or found is None:
        return None
    statement, model, _ = found
    outer = outermost_loop(tree, statement, model)
    if outer is None:
        return as_change(source, source, line, f"Write `{model}.{call}` where the model is made.")
    edited = tree.edited({}, {outer: [f"{model}.{call}"]})
    return None if edited is None else as_change(source, edited, line, "")
