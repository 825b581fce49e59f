"""Options that are the fields of a class: `HfArgumentParser`, tyro, simple_parsing, Tap."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Definition, Expression, Key
from bottleneck_doctor.edits.origin.document import Document
from bottleneck_doctor.edits.origin.follower import Defined, Follower
from bottleneck_doctor.edits.origin.instance import Instance, class_member
from bottleneck_doctor.edits.origin.options import Option, replaced_by
from bottleneck_doctor.edits.tree import constant, dotted, last_name

PARSES = frozenset({"parse_args_into_dataclasses", "parse_args_and_config", "parse_json_file", "parse_yaml_file"})
OF_COMMAND_LINE = frozenset({"parse_args_into_dataclasses", "parse_args_and_config"})
CLI = frozenset({"tyro.cli", "simple_parsing.parse", "draccus.parse", "pyrallis.parse", "jsonargparse.auto_cli"})


@dataclass(frozen=True)
class Fields(Definition):
    """The options of one class. `owner`: None where the class is a library's, and only the command line sets them."""

    owner: Defined | None
    at: Expression
    hyphens: bool

    def member(self, key: Key, follower: Follower) -> Definition | None:
        name = str(key)
        word = f"--{name.replace('_', '-') if self.hyphens else name}"
        default = None if self.owner is None else class_member(self.owner, name, follower)
        if not isinstance(default, Expression):
            return Option(self.at.path, self.at.line, (word,), None, lambda value: None)
        value = constant(default.node)
        is_switch = self.hyphens and value is not None and isinstance(value[0], bool)
        return Option(
            path=default.path,
            line=default.line,
            names=tuple(dict.fromkeys((word, f"--{name}"))),
            default=default,
            with_default=replaced_by(default),
            off_names=(f"--no-{word[2:]}",) if is_switch else (),
            takes="switch" if is_switch else "value",
        )


@dataclass(frozen=True)
class Several(Definition):
    """What a parser makes of several classes, in order."""

    each: tuple[Definition, ...]

    def member(self, key: Key, follower: Follower) -> Definition | None:
        return self.each[key] if isinstance(key, int) and 0 <= key < len(self.each) else None


@dataclass(frozen=True)
class OfUnseenClasses(Definition):
    """What a parser makes of classes that are not known: one object each, and the command line sets what is in them."""

    at: Expression

    def member(self, key: Key, follower: Follower) -> Definition | None:
        return Fields(None, self.at, hyphens=False) if isinstance(key, int) else None


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    name = last_name(call.func)
    if dotted(call.func) in CLI and call.args:
        owner = follower.define(at.at(call.args[0].value))
        return Fields(owner, at, hyphens=True) if isinstance(owner, Defined) else None
    if not isinstance(call.func, cst.Attribute):
        return None
    if name in PARSES:
        parser = follower.define(at.at(call.func.value))
        made = None if parser is None else _of_parser(parser, follower)
        unseen = name in OF_COMMAND_LINE and _file(follower) is None
        return OfUnseenClasses(at) if made is None and unseen else made
    if name == "parse_args":
        made = follower.define(at.at(call.func.value))
        if isinstance(made, Instance) and any(last_name(each.value) == "Tap" for each in made.owner.bases):
            return Fields(made.owner, at, hyphens=False)
    return None


def _of_parser(parser: Definition, follower: Follower) -> Definition | None:
    """What `HfArgumentParser((ModelArguments, TrainingArguments))` makes: of the command line, or of the one file that
    it names."""
    if not isinstance(parser, Expression) or not isinstance(parser.node, cst.Call) or not parser.node.args:
        return None
    first = parser.node.args[0].value
    inside = first.elements if isinstance(first, (cst.Tuple, cst.List)) else ()
    classes = [each.value for each in inside] or [first]
    file = _file(follower)
    if file is not None:
        return Several((Document(follower.project.file(file)),) * len(classes))
    found = []
    for each in classes:
        at = parser.at(each)
        owner = follower.define(at) if isinstance(each, (cst.Name, cst.Attribute)) else None
        found.append(Fields(owner if isinstance(owner, Defined) else None, at, hyphens=False))
    return Several(tuple(found))


def _file(follower: Follower) -> str | None:
    """The one file that the command line names, if that is all that it holds: options are read from it then."""
    words = follower.command_line.behind
    return words[0] if len(words) == 1 and words[0].endswith((".json", ".yaml", ".yml")) else None
