"""What the user has switched on, where it is written: source text in, the edit that switches it out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText
from bottleneck_doctor.knobs import Switch


@dataclass(frozen=True)
class Switched:
    """An edit of one file, and those of the switches that were found in it."""

    text: ChangeText
    found: frozenset[Switch]


def switches_change(source: str, wanted: Mapping[Switch, SettingValue]) -> Switched | None:
    """Write the values of `wanted` where `source` writes the opposite; None where it does so nowhere.

    What is on by a `with` alone is named in the note. A value that is not written out, such as an option of the user's
    program, is not touched.
    """
    text = SourceText.parse(source)
    if text is None:
        return None
    edits: list[tuple[int, int, str]] = []
    notes: list[str] = []
    lines: list[int] = []
    found = set()
    for switch, value in wanted.items():
        for place in _opposites(text.tree, switch, value):
            edits.append((*text.span(place), repr(value)))
            lines.append(place.lineno)
            found.add(switch)
        for call in _contexts(text.tree, switch):
            notes.append(f"Remove `{ast.unparse(call)}` in line {call.lineno}.")
            lines.append(call.lineno)
            found.add(switch)
    if not found:
        return None
    edited = source
    for begin, end, new in sorted(edits, reverse=True):
        edited = edited[:begin] + new + edited[end:]
    return Switched(as_change(source, edited, min(lines), " ".join(notes)), frozenset(found))


def _opposites(tree: ast.Module, switch: Switch, value: SettingValue) -> Iterator[ast.expr]:
    """The places where the other value of the switch is written."""
    for node in ast.walk(tree):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            given = [each.value for each in node.keywords if each.arg in switch.arguments]
            if _dotted(node.func).rpartition(".")[2] in switch.calls:
                given += node.args[:1] or [each.value for each in node.keywords if each.arg == "mode"]
        elif isinstance(node, ast.Assign) and any(_ends(each, switch.attribute) for each in node.targets):
            given = [node.value]
        for each in given:
            if isinstance(each, ast.Constant) and isinstance(each.value, bool) and each.value is not value:
                yield each


def _contexts(tree: ast.Module, switch: Switch) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and _dotted(call.func).rpartition(".")[2] in switch.contexts:
                    yield call


def _ends(target: ast.expr, attribute: str) -> bool:
    return bool(attribute) and f".{_dotted(target)}".endswith(f".{attribute}")


def _dotted(node: ast.expr) -> str:
    """`torch.backends.cudnn.deterministic` as it is written; "" for what is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""
