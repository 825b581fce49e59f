"""An option of the user's program: the user changes its default, or the word that the command line has for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from bottleneck_doctor.edits.arguments import with_more
from bottleneck_doctor.edits.origin.command_line import CommandLine, Given
from bottleneck_doctor.edits.origin.definition import Command, Definition, Expression, Origin
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import constant

Takes = Literal["value", "switch"]


@dataclass(frozen=True)
class Option(Definition):
    """`names` set it (`--workers`, `-j`), or switch it on; `off_names` switch it off (`--no-pin`). `default`: the
    expression of its default, None where none is written. `with_default`: the file's text where one is written."""

    path: str
    line: int
    names: tuple[str, ...]
    default: Expression | None
    with_default: Callable[[object], str | None]
    off_names: tuple[str, ...] = ()
    takes: Takes = "value"
    otherwise: tuple[object] | None = None
    """What it is where no default is written, if that is known."""
    reads_command_line: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Option) and (self.path, self.line, self.names) == (other.path, other.line, other.names)

    def __hash__(self) -> int:
        return hash((self.path, self.line, self.names))

    def origin(self, follower: Follower) -> Origin | None:
        """The default, or where that is written in its turn."""
        command = self._command(follower.command_line) if self.reads_command_line else None
        written = None if self.default is None else follower.define(self.default)
        origin = None if written is None else written.origin(follower)
        if origin is None:
            origin = Origin(self.path, self.line, "", self.with_default, self.otherwise)
        return Origin(
            path=origin.path,
            line=origin.line,
            said=f"the default of `{self.shown}`",
            edited=origin.edited,
            now=origin.now,
            command=command,
        )

    @property
    def shown(self) -> str:
        return self._long(self.names or self.off_names)

    def given(self, command_line: CommandLine) -> Given | None:
        """How the command line sets it now."""
        if self.takes == "switch":
            on, off = (command_line.option(names, flag=True) for names in (self.names, self.off_names))
            return on or off
        return command_line.option(self.names)

    def _command(self, command_line: CommandLine) -> Command:
        given = self.given(command_line)
        return Command("" if given is None else given.words, lambda value: self._words(value, given))

    def _words(self, value: object, given: Given | None) -> str:
        if self.takes == "switch":
            names = self.names if value else self.off_names
            return self._long(names) if names else ""
        name, joined = self._long(self.names), " "
        if given is not None and not given.value and not given.joined:
            # It stands there bare, which switches it on.
            return given.words if value is True else f"{given.words} {value}"
        if given is not None:
            name, joined = given.words[: len(given.words) - len(given.value) - len(given.joined)], given.joined
        return f"{name}{joined}{_as_word(value, '' if given is None else given.value)}"

    @staticmethod
    def _long(names: tuple[str, ...]) -> str:
        return max(names, key=lambda name: (name.startswith("--"), len(name)), default="")


def spelled(call: cst.Call) -> tuple[str, ...]:
    """The words by which an option is given, as the call that declares it has them."""
    given = [constant(each.value) for each in call.args if each.keyword is None and not each.star]
    return tuple(each[0] for each in given if each is not None and isinstance(each[0], str))


def default_argument(at: Expression, name: str = "default") -> Callable[[object], str | None]:
    """The edit of the default in the call that declares an option: another value, or one where there is none."""
    call, tree = at.node, at.tree
    assert isinstance(call, cst.Call)
    there = next((each.value for each in call.args if each.keyword is not None and each.keyword.value == name), None)

    def edited(value: object) -> str | None:
        if there is not None:
            return replaced_by(at.at(there))(value)
        return tree.edited({call: lambda _: with_more(tree, call, {name: value})})

    return edited


def replaced_by(at: Expression) -> Callable[[object], str | None]:
    """The edit that writes a value in the place of an expression."""
    return lambda value: at.tree.with_value(at.node, value)


def _as_word(value: object, instead_of: str) -> str:
    """A value as the command line has it, in the way of the one that is there."""
    if isinstance(value, bool):
        if instead_of.isdigit():
            return str(int(value))
        return str(value).lower() if instead_of.islower() else str(value)
    return str(value)
