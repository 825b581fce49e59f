"""The edit that gives calls at known lines an argument: source text and the lines in, `ChangeText` or nothing out.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import Edit, SourceTree, constant, has_comment, last_name, put
from bottleneck_doctor.knobs import GivenArgument


def given_argument_change(source: str, calls: Sequence[tuple[str, int]], edit: GivenArgument) -> ChangeText | None:
    """Give calls in `source` the argument. `calls`: the last name of what is called and its line, counted from 1.

    Calls that have it already stay as they are. None where `source` has no such call there, or where a call unpacks
    arguments, or writes another one than a literal.
    """
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    edits: dict[cst.CSTNode, Edit] = {}
    for name, line in calls:
        there = [each for each in tree.nodes(cst.Call) if tree.lines(each)[0] == line and last_name(each.func) == name]
        if not there:
            return None
        for call in there:
            made = _edit_of(tree, call, edit)
            if made is None:
                return None
            edits |= made
    edited = tree.edited(edits)
    return None if edited is None else as_change(source, edited, min((line for _, line in calls), default=1), "")


def _edit_of(tree: SourceTree, call: cst.Call, edit: GivenArgument) -> dict[cst.CSTNode, Edit] | None:
    """What is done to a call, if anything; None where that can't be seen."""
    if any(each.star for each in call.args):
        return None
    positional = [each.value for each in call.args if each.keyword is None]
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    present = positional[edit.position] if len(positional) > edit.position else named.get(edit.name)
    if present is None:
        return {call: lambda node: _with_more(tree, call, node, edit)}
    now = constant(present)
    if now is None or has_comment(present):
        return None
    return {} if now == (edit.value,) else {present: put(tree.literal(edit.value))}


def _with_more(tree: SourceTree, call: cst.Call, node: cst.CSTNode, edit: GivenArgument) -> cst.CSTNode:
    return arguments.with_more(tree, cst.ensure_type(node, cst.Call), {edit.name: edit.value}, place=call)
