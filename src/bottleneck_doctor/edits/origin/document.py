"""Configuration files: a key of a YAML or JSON file that the program opens. One scalar of the text is replaced, and all
else stays as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst
import yaml
from yaml.constructor import SafeConstructor

from bottleneck_doctor.edits.origin.definition import Absent, Command, Definition, Expression, Key, Origin
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.options import Option
from bottleneck_doctor.edits.tree import code, constant, dotted, last_name

ENDINGS = (".yaml", ".yml", ".json")
LOADS = frozenset({"safe_load", "load", "loads", "full_load", "unsafe_load"})
LOADERS = frozenset({"yaml", "json", "OmegaConf", "YAML", "ruamel"})
READS = frozenset({"read", "read_text", "open"})


@dataclass(frozen=True)
class Document(Definition):
    """A part of a configuration file. `overridden`: the command line sets keys of it as Hydra has them."""

    path: str
    keys: tuple[Key, ...] = ()
    overridden: bool = False

    def member(self, key: Key, follower: Follower) -> Definition | None:
        inner = Document(self.path, (*self.keys, key), self.overridden)
        node = node_at(follower.project.text(self.path), inner.keys)
        return None if node is None else Absent() if node is MISSING else inner

    def origin(self, follower: Follower) -> Origin | None:
        text = follower.project.text(self.path)
        node = node_at(text, self.keys)
        if text is None or not isinstance(node, yaml.ScalarNode) or node is MISSING or "${" in node.value:
            return None
        name = ".".join(map(str, self.keys))
        command = None
        if self.overridden:
            given = follower.command_line.override(name)
            command = Command(given or "", lambda value: f"{name}={_scalar(value, '')}")
        return Origin(
            path=self.path,
            line=node.start_mark.line + 1,
            said=f"the entry `{name}`",
            edited=lambda value: replaced(text, node, self.keys, value),
            now=_value(node),
            command=command,
        )


_MARKS = re.compile(r"^(?:[&!]\S*\s+)+")
"""Anchors and tags, which stand in front of a scalar and stay."""
MISSING = yaml.ScalarNode("missing", "")
"""Stands for a key that a file does not have."""


def node_at(text: str | None, keys: Sequence[Key]) -> yaml.Node | None:
    """The node under some keys, `MISSING` where there is none; None where the text is no YAML or JSON."""
    if text is None:
        return None
    try:
        # JSON is YAML, but for tabs between its tokens; spaces leave everything where it is.
        node = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    for key in keys:
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            node = node.value[key] if 0 <= key < len(node.value) else MISSING
        elif isinstance(node, yaml.MappingNode):
            node = _under(node, str(key))
        else:
            return None
        if node is None or node is MISSING:
            return node
    return node


def _under(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    found = [value for name, value in mapping.value if isinstance(name, yaml.ScalarNode) and name.value == key]
    if found:
        return found[0] if len(found) == 1 else None
    for name, value in mapping.value:
        if isinstance(name, yaml.ScalarNode) and name.value == "<<":
            for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                inner = _under(each, key) if isinstance(each, yaml.MappingNode) else None
                if inner is not MISSING:
                    return inner
    return MISSING


def _value(node: yaml.ScalarNode) -> tuple[object] | None:
    """What a scalar is read as."""
    try:
        value = SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError, KeyError, AttributeError):
        return None  # A tag promises what the text is not.
    return (value,) if value is None or isinstance(value, (bool, int, float, str)) else None


def replaced(text: str, node: yaml.ScalarNode, keys: Sequence[Key], value: object) -> str | None:
    """The text with another scalar there; None where that would be read as something else."""
    start, end = node.start_mark.index, node.end_mark.index
    old = _MARKS.sub("", text[start:end], count=1)
    start = end - len(old)
    new = _scalar(value, old)
    after = text[:start] + (f" {new}" if text[start - 1 : start] == ":" else new) + text[end:]
    there = node_at(after, keys)
    seen = _value(there) if isinstance(there, yaml.ScalarNode) else None
    return after if seen is not None and type(seen[0]) is type(value) and seen[0] == value else None


def _scalar(value: object, instead_of: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value) if instead_of in ("True", "False") else str(value).lower()
    return str(value)


# -- which file the program opens --------------------------------------------------------------------------------------


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    if dotted(call.func) == "OmegaConf.merge":
        return _merged(at, call, follower)
    if last_name(call.func) not in LOADS or not call.args or not isinstance(call.func, cst.Attribute):
        return None
    base = call.func.value
    if last_name(base.func if isinstance(base, cst.Call) else base) not in LOADERS:
        return None
    path = _opened(at.at(call.args[0].value), follower)
    return Document(path) if path is not None and path.endswith(ENDINGS) else None


def _merged(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    """A file, and what the command line says in its place."""
    others = [each.value for each in call.args if code(each.value) != "OmegaConf.from_cli()"]
    made = follower.define(at.at(others[0])) if len(others) == 1 < len(call.args) else None
    return replace(made, overridden=True) if isinstance(made, Document) else None


def _opened(at: Expression, follower: Follower) -> str | None:
    """The file that an expression stands for: its path, or what was opened or read."""
    made = follower.define(at)
    if isinstance(made, Expression) and isinstance(made.node, cst.Call):
        call = made.node
        if dotted(call.func) == "open" and call.args:
            return path_of(made.at(call.args[0].value), follower)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in READS:
            return _opened(made.at(call.func.value), follower)
    return path_of(at, follower)


def path_of(at: Expression, follower: Follower) -> str | None:
    """The path that an expression stands for; None where it is not written out."""
    written = _written(at, follower)
    return None if written is None else follower.project.file(written)


def _written(at: Expression, follower: Follower) -> str | None:
    node = at.node
    value = constant(node)
    if value is not None:
        return value[0] if isinstance(value[0], str) else None
    if isinstance(node, cst.Name) and node.value == "__file__":
        return at.path
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return _joined([node.left, node.right], at, follower)
    if isinstance(node, cst.Attribute) and node.attr.value == "parent":
        return _folder(_written(at.at(node.value), follower))
    if isinstance(node, cst.Call) and not any(each.star or each.keyword for each in node.args):
        name, given = last_name(node.func), [each.value for each in node.args]
        if name in ("join", "Path", "str", "abspath", "realpath", "expanduser", "fspath") and given:
            return _joined(given, at, follower)
        if name == "dirname" and given:
            return _folder(_written(at.at(given[0]), follower))
        if name == "with_name" and len(given) == 1 and isinstance(node.func, cst.Attribute):
            beside, last = _written(at.at(node.func.value), follower), _written(at.at(given[0]), follower)
            return None if beside is None or last is None else os.path.join(os.path.dirname(beside), last)
        if name in ("resolve", "absolute", "expanduser") and isinstance(node.func, cst.Attribute):
            return _written(at.at(node.func.value), follower)
    if code(node) == "sys.argv[1]":
        return next(iter(follower.command_line.behind), None)
    if isinstance(node, cst.IfExp):
        holds = follower.command_line.says(code(node.test))
        return None if holds is None else _written(at.at(node.body if holds else node.orelse), follower)
    made = follower.define(at)
    if isinstance(made, Option):
        given_now = made.given(follower.command_line)
        if given_now is not None:
            return given_now.value
        return None if made.default is None else _written(made.default, follower)
    return _written(made, follower) if isinstance(made, Expression) and made.node is not node else None


def _joined(parts: Sequence[cst.BaseExpression], at: Expression, follower: Follower) -> str | None:
    written = [_written(at.at(each), follower) for each in parts]
    return None if None in written else os.path.join(*(each for each in written if each is not None))


def _folder(path: str | None) -> str | None:
    return None if path is None else os.path.dirname(path)
