"""The edit that calls what a function wraps: source text and the lines of such calls in, `ChangeText` or nothing out.
`checkpoint(layer, rows, use_reentrant=False)` becomes `layer(rows)`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import Edit, SourceTree, has_comment, last_name

_PLAIN = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
"""Expressions that can be called without parentheses around them."""


def direct_call_change(source: str, calls: Sequence[tuple[str, int]], own: Sequence[str]) -> ChangeText | None:
    """Call the first argument of calls with the others. `calls`: the last name of what is called and its line, counted
    from 1; `own`: names of arguments that are the wrapper's own.

    None where `source` has no such call there, or where what it wraps can't be seen.
    """
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    edits: dict[cst.CSTNode, Edit] = {}
    for name, line in calls:
        there = [each for each in tree.calls_on(line) if last_name(each.func) == name]
        if not there or not all(map(_is_clear, there)):
            return None
        edits |= {each: lambda node: _direct(cst.ensure_type(node, cst.Call), own) for each in there}
    edited = tree.edited(edits)
    return None if edited is None else as_change(source, edited, min((line for _, line in calls), default=1), "")


def _is_clear(call: cst.Call) -> bool:
    """Whether the first argument is what is wrapped, and all that the call has of its own is named."""
    if not call.args or has_comment(call):
        return False
    first = call.args[0]
    return not first.star and first.keyword is None and all(each.star != "**" for each in call.args)


def _direct(call: cst.Call, own: Sequence[str]) -> cst.Call:
    wrapped = call.args[0].value
    if not isinstance(wrapped, _PLAIN) and not wrapped.lpar:
        wrapped = wrapped.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    left = cst.ensure_type(arguments.without(arguments.without_places(call, [0]), own), cst.Call)
    return left.with_changes(func=wrapped)
