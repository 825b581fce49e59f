"""The edit of calls that are known by the name of what they call: source text in, the edit out. Pure."""

from __future__ import annotations

import ast

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_call import call_change
from bottleneck_doctor.edits.source import SourceText
from bottleneck_doctor.knobs import Argument


def named_change(source: str, edit: Argument) -> ChangeText | None:
    """Give every call of that name its arguments; None where `source` has no such call. Where no argument does it, or
    none can be put in safely, the note says what to do at the first of them."""
    text = SourceText.parse(source)
    calls = [] if text is None else _calls(text.tree, edit.calls)
    if text is None or not calls:
        return None
    first, notes = calls[0].lineno, []
    # From the last one on, so that those before it stay where they are.
    for call in reversed(calls) if edit.given else ():
        here = next(each for each in _calls(text.tree, edit.calls) if _place(each) == _place(call))
        change = call_change(text, here, dict(edit.given), edit.without)
        after = None if change is None else SourceText.parse(change.edited or text.source)
        if change is None or after is None:
            return ChangeText(line=first, diff="", note=_sentence(edit))
        notes += [change.note] if change.note else []
        text = after
    if text.source == source:
        return ChangeText(line=first, diff="", note=" ".join(notes) or _sentence(edit))
    return as_change(source, text.source, first, " ".join(notes))


def _calls(tree: ast.Module, names: tuple[str, ...]) -> list[ast.Call]:
    """The calls of these names, in the order of the text."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in names]
    return sorted(calls, key=_place)


def _place(call: ast.Call) -> tuple[int, int]:
    return call.lineno, call.col_offset


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _sentence(edit: Argument) -> str:
    return f"{edit.otherwise[:1].upper()}{edit.otherwise[1:]}."
