"""argparse: `args.workers` is the option for which a parser of the user's has an `add_argument`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Definition, Expression, Key
from bottleneck_doctor.edits.origin.follower import Follower, module_of
from bottleneck_doctor.edits.origin.options import Option, default_argument, spelled
from bottleneck_doctor.edits.tree import constant, last_name, names_of

PARSES = frozenset({"parse_args", "parse_intermixed_args"})
PARSES_SOME = frozenset({"parse_known_args", "parse_known_intermixed_args"})
OTHERWISE: dict[str, tuple[object]] = {"store": (None,), "store_true": (False,), "store_false": (True,)}
OTHERWISE["BooleanOptionalAction"] = (None,)
"""What an option is that has no default, by its action."""


@dataclass(frozen=True)
class Arguments(Definition):
    """What a parser returns. `files`: where its options may be added."""

    files: tuple[str, ...]
    reads_command_line: bool

    def member(self, key: Key, follower: Follower) -> Definition | None:
        name = str(key)
        adding = [each for file in self.files for each in _adding(file, name, follower)]
        if len(adding) != 1:
            return None
        at, call = adding[0]
        option = self._option(at, call)
        # What has to be given is given, and no default counts.
        has_to = option is not None and (_named(call).get("required") is not None or not option.shown.startswith("-"))
        return None if option is None or (has_to and option.given(follower.command_line) is None) else option

    def _option(self, at: Expression, call: cst.Call) -> Option | None:
        named = _named(call)
        action = _action(named)
        if last_name(call.func) != "add_argument" or action not in OTHERWISE or "nargs" in named or "choices" in named:
            return None
        default = named.get("default")
        names, off = spelled(call), tuple(f"--no-{name[2:]}" for name in spelled(call) if name.startswith("--"))
        return Option(
            path=at.path,
            line=at.line,
            names=() if action == "store_false" else names,
            default=None if default is None else at.at(default),
            with_default=default_argument(at),
            off_names={"store_false": names, "BooleanOptionalAction": off}.get(action, ()),
            takes="value" if action == "store" else "switch",
            otherwise=OTHERWISE[action],
            reads_command_line=self.reads_command_line,
        )


@dataclass(frozen=True)
class Both(Definition):
    """The arguments, and the words that the parser does not know."""

    arguments: Arguments

    def member(self, key: Key, follower: Follower) -> Definition | None:
        return self.arguments if key == 0 else None


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    name = last_name(call.func)
    if not isinstance(call.func, cst.Attribute) or name not in PARSES | PARSES_SOME:
        return None
    words = call.args[0].value if call.args else None
    if isinstance(words, cst.List) and words.elements:
        return None
    parser = follower.define(at.at(call.func.value))
    files = [at.path, *([parser.path] if isinstance(parser, Expression) else [])]
    files += [module for file in dict.fromkeys(files) for module in imported(file, follower)]
    arguments = Arguments(tuple(dict.fromkeys(files)), reads_command_line=not isinstance(words, cst.List))
    return Both(arguments) if name in PARSES_SOME else arguments


def _adding(file: str, key: str, follower: Follower) -> Iterator[tuple[Expression, cst.Call]]:
    """The calls of a file that add the option which is stored as `key`, or set its default."""
    text = follower.project.text(file) or ""
    # Reading a tree takes a while, and most modules add no option.
    spelled = key in text or key.replace("_", "-") in text
    tree = follower.tree(file) if ("add_argument" in text and spelled) or "set_defaults" in text else None
    for call in [] if tree is None else tree.nodes(cst.Call):
        sets = last_name(call.func) == "set_defaults" and (key in _named(call) or any(each.star for each in call.args))
        if tree is not None and (sets or (last_name(call.func) == "add_argument" and _stored_as(call) == key)):
            yield Expression(file, tree, call), call


def imported(file: str, follower: Follower) -> Iterator[str]:
    """The user's modules that a file imports."""
    tree = follower.tree(file)
    for node in [] if tree is None else tree.nodes((cst.Import, cst.ImportFrom)):
        names = [alias.evaluated_name for alias in names_of(node)]
        if isinstance(node, cst.ImportFrom):
            module = module_of(node)
            names = [module, *(f"{module}{'' if module.endswith('.') else '.'}{name}" for name in names)]
        for name in names:
            found = follower.project.module(name, file)
            if found is not None:
                yield found


def _named(call: cst.Call) -> dict[str, cst.BaseExpression]:
    return {each.keyword.value: each.value for each in call.args if each.keyword is not None}


def _action(named: dict[str, cst.BaseExpression]) -> str:
    action = named.get("action")
    if action is None:
        return "store"
    value = constant(action)
    return last_name(action) if value is None else str(value[0])


def _stored_as(call: cst.Call) -> str | None:
    """The attribute that an option becomes, as argparse has it."""
    named, names = _named(call), spelled(call)
    if "dest" in named:
        dest = constant(named["dest"])
        return str(dest[0]) if dest is not None else None
    name = next((each for each in names if each.startswith("--")), names[0] if names else None)
    return None if name is None else name.lstrip("-").replace("-", "_")
