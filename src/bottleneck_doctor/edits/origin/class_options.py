"""jsonargparse, and Lightning's `LightningCLI`: what a class takes is an option of the program. The part that the class
is of stands in front, as in `--data.num_workers`; a configuration file has it under `data`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst
import yaml

from bottleneck_doctor.edits.origin.definition import Definition, Expression, Key, Origin
from bottleneck_doctor.edits.origin.document import ENDINGS, MISSING, Document, node_at
from bottleneck_doctor.edits.origin.follower import Defined, Follower, Parameter
from bottleneck_doctor.edits.origin.options import Option, replaced_by
from bottleneck_doctor.edits.tree import constant, last_name

CLI, LIBRARY = "LightningCLI", "jsonargparse"
CONFIGS = ("--config", "-c")
SUBCOMMANDS = ("fit", "validate", "test", "predict")
CLASS, ARGUMENTS = "class_path", "init_args"
"""Where the class of a part can be chosen, the keys that have it and what it takes."""
_PARTS = {"model": ("model_class", "subclass_mode_model"), "data": ("datamodule_class", "subclass_mode_data")}
"""The parts of a `LightningCLI`, in the order of its parameters, with the parameters that give the class of each."""


@dataclass(frozen=True)
class Part:
    """What the command line sets up under a name. `chosen`: whether its class is chosen beside what it takes."""

    name: str
    chosen: bool

    def keys(self, name: str) -> tuple[Key, ...]:
        """Where something that it takes stands in a configuration file."""
        return (self.name, ARGUMENTS, name) if self.chosen else (self.name, name)

    def option(self, name: str, default: Expression) -> Option:
        words = (f"--{self.name}.{name}", *([f"--{self.name}.{ARGUMENTS}.{name}"] if self.chosen else []))
        return Option(default.path, default.line, words, default, replaced_by(default))


@dataclass(frozen=True)
class Configured(Definition):
    """An entry of a configuration file, which the command line may give as well."""

    entry: Document
    option: Option

    def origin(self, follower: Follower) -> Origin | None:
        written, default = self.entry.origin(follower), self.option.origin(follower)
        return None if written is None or default is None else replace(written, command=default.command)


def of_parameter(parameter: Parameter, follower: Follower) -> Definition | None:
    """What a class of the user's takes, where nobody but the command line is seen to make it."""
    owner = follower.class_of(parameter.path, parameter.tree, parameter.function)
    if owner is None or parameter.function.name.value != "__init__" or parameter.default is None:
        return None
    return of_class(owner, parameter.name, parameter.default, follower)


def of_class(owner: Defined, name: str, default: Expression, follower: Follower) -> Definition | None:
    """The same by the name of what it takes, as a parameter or as a field of a dataclass."""
    part = None if follower.callers(owner.path, owner.name) else _part_of(owner, follower)
    return None if part is None else entry(part.keys(name), part.option(name, default), follower)


def entry(keys: tuple[Key, ...], option: Option, follower: Follower) -> Definition:
    """The entry of the last configuration file that has it; the option itself where none does."""
    for document in reversed(list(_configurations(follower))):
        there = Document(document.path, (*document.keys, *keys))
        node = node_at(follower.project.text(there.path), there.keys)
        if node is not None and node is not MISSING:
            return Configured(there, option)
    return option


def clis(follower: Follower) -> Iterator[Expression]:
    """The calls that set up a `LightningCLI`, or a class of the user's that is one."""
    trees = {file: tree for file in _files(follower) if (tree := follower.tree(file)) is not None}
    own = {
        made.name.value
        for tree in trees.values()
        for made in tree.nodes(cst.ClassDef)
        if any(last_name(each.value) == CLI for each in made.bases)
    }
    for file, tree in trees.items():
        yield from (
            Expression(file, tree, call) for call in tree.nodes(cst.Call) if last_name(call.func) in {CLI, *own}
        )


def _files(follower: Follower) -> Iterator[str]:
    """The files that are known to run and that know such a parser: elsewhere, a word may be another option's."""
    script = follower.running.script
    for file in dict.fromkeys((*([] if script is None else [script]), *follower.running.files)):
        text = follower.project.text(file) or ""
        if CLI in text or LIBRARY in text:
            yield file


def _part_of(owner: Defined, follower: Follower) -> Part | None:
    """The part of the program that a class is; None where that is not seen."""
    if next(_files(follower), None) is None:
        return None
    for call in clis(follower):
        for place, (part, (given, chosen)) in enumerate(_PARTS.items()):
            at = _argument(call, place, given)
            made = None if at is None else follower.define(at)
            if isinstance(made, Defined) and (made.path, made.name) == (owner.path, owner.name):
                switch = _argument(call, None, chosen)
                return Part(part, chosen=switch is not None and constant(switch.node) == (True,))
    named = next((part for part, word in _chosen(follower) if word.rpartition(".")[2] == owner.name), None)
    return None if named is None else Part(named, chosen=True)


def _argument(call: Expression, place: int | None, name: str) -> Expression | None:
    assert isinstance(call.node, cst.Call)
    if any(each.star for each in call.node.args):
        return None
    for number, each in enumerate(call.node.args):
        if number == place if each.keyword is None else each.keyword.value == name:
            return call.at(each.value)
    return None


def _chosen(follower: Follower) -> Iterator[tuple[str, str]]:
    """The classes that the command line and its files choose: each with the part that it is chosen for."""
    words = follower.command_line.behind
    for number, word in enumerate(words):
        head, sign, tail = word.partition("=")
        part = head.removeprefix("--").removesuffix(f".{CLASS}")
        if head.startswith("--") and part.isidentifier():
            yield part, tail if sign else "".join(words[number + 1 : number + 2])
    for document in _configurations(follower):
        node = node_at(follower.project.text(document.path), document.keys)
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            chosen = node_at(follower.project.text(document.path), (*document.keys, str(key.value), CLASS))
            if isinstance(value, yaml.MappingNode) and isinstance(chosen, yaml.ScalarNode) and chosen is not MISSING:
                yield str(key.value), chosen.value


def _configurations(follower: Follower) -> Iterator[Document]:
    """The configuration files of the command line, in order. In front of a subcommand, they hold what all take."""
    words = follower.command_line.behind
    command = next((each for each in words if each in SUBCOMMANDS), None)
    for number, given in follower.command_line.uses(CONFIGS):
        path = follower.project.file(given.value) if given.value.endswith(ENDINGS) else None
        if path is not None:
            yield Document(path, () if command is None or number > words.index(command) else (command,))
