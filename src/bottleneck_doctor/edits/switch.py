"""What the user has switched on, where it is written: source text in, the edit that switches it out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.elsewhere import followed
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import Edit, SourceTree, constant, dotted, last_name, put, said
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
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    edits: dict[cst.CSTNode, Edit] = {}
    notes: list[str] = []
    lines: list[int] = []
    found = set()
    for switch, value in wanted.items():
        for place in _opposites(tree, switch, value):
            edits[place] = put(tree.literal(value))
            lines.append(tree.lines(place)[0])
            found.add(switch)
        for call in _contexts(tree, switch):
            lines.append(tree.lines(call)[0])
            notes.append(f"Remove `{said(call)}` in line {lines[-1]}.")
            found.add(switch)
    edited = tree.edited(edits) if found else None
    if edited is None:
        return None
    return Switched(as_change(source, edited, min(lines), " ".join(notes)), frozenset(found))


def set_switches(
    drafts: Drafts, follower: Follower, file: str, wanted: Mapping[Switch, SettingValue]
) -> tuple[list[Told], frozenset[Switch]]:
    """Write the values of `wanted` into `drafts` where `file` takes the opposite from: an option, a configuration. Says
    which switches that were."""
    told: list[Told] = []
    found = set()
    for switch, value in wanted.items():
        tree = follower.tree(file)
        for place in [] if tree is None else _given(tree, switch):
            assert tree is not None
            done = followed(drafts, follower, Expression(file, tree, place), f"`{said(place)}`", value)
            if done:
                told += done
                found.add(switch)
                follower = follower.anew()
                break
    return told, frozenset(found)


def _opposites(tree: SourceTree, switch: Switch, value: SettingValue) -> list[cst.BaseExpression]:
    """The places where the other value of the switch is written."""
    given = _given(tree, switch)
    return [each for each in given if constant(each) == (not value,) and isinstance(each, cst.Name)]


def _given(tree: SourceTree, switch: Switch) -> list[cst.BaseExpression]:
    """What the file gives the switch."""
    given: list[cst.BaseExpression] = []
    for call in tree.nodes(cst.Call):
        named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
        given += [each for name, each in named.items() if name in switch.arguments]
        if last_name(call.func) in switch.calls:
            positional = [each.value for each in call.args if each.keyword is None and not each.star]
            given += positional[:1] or [each for name, each in named.items() if name == "mode"]
    for node in tree.nodes(cst.Assign):
        given += [node.value for each in node.targets if _ends(each.target, switch.attribute)]
    return given


def _contexts(tree: SourceTree, switch: Switch) -> Iterator[cst.Call]:
    for node in tree.nodes(cst.With):
        for item in node.items:
            if isinstance(item.item, cst.Call) and last_name(item.item.func) in switch.contexts:
                yield item.item


def _ends(target: cst.BaseExpression, attribute: str) -> bool:
    return bool(attribute) and f".{dotted(target)}".endswith(f".{attribute}")
