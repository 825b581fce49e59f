"""What a name or an attribute of the user's stands for, and where its value is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from bottleneck_doctor.edits.tree import SourceTree, constant

if TYPE_CHECKING:
    from bottleneck_doctor.edits.origin.follower import Follower

Key = str | int
"""A part of something: an attribute, a key, or a place in a tuple."""


@dataclass(frozen=True)
class Command:
    """The words by which the command line sets a value. `given`: those that set it as the program is started now, ""
    where none do. `needed`: "" where the value needs no words at all."""

    given: str
    needed: Callable[[object], str]


@dataclass(frozen=True)
class Origin:
    """Where a value is written. `said`: what that place is called, in a sentence. `edited`: the file's text with
    another value there, None where it can't hold it. `now`: the value that stands there, in a tuple; None where it is
    none that can be read."""

    path: str
    line: int
    said: str
    edited: Callable[[object], str | None]
    now: tuple[object] | None = None
    command: Command | None = None


class Definition:
    """What something of the user's is. One class a kind."""

    def member(self, key: Key, follower: Follower) -> Definition | None:
        """A part of it; None where it has none of that name, or that is not known."""
        return None

    def origin(self, follower: Follower) -> Origin | None:
        """Where its value is written, where it is one that can be written out."""
        return None


@dataclass(frozen=True)
class Absent(Definition):
    """What is known not to be there, so that the value is what the program takes otherwise."""


@dataclass(frozen=True)
class Expression(Definition):
    """An expression that leads no further, or has not been followed yet: a literal, the display of a dict, a call."""

    path: str
    tree: SourceTree
    node: cst.BaseExpression

    def at(self, node: cst.BaseExpression) -> Expression:
        """Another expression of the same file."""
        return Expression(self.path, self.tree, node)

    @property
    def line(self) -> int:
        return self.tree.lines(self.node)[0]

    def member(self, key: Key, follower: Follower) -> Definition | None:
        if isinstance(self.node, (cst.Tuple, cst.List)) and isinstance(key, int) and 0 <= key < len(self.node.elements):
            element = self.node.elements[key]
            return follower.define(self.at(element.value)) if isinstance(element, cst.Element) else None
        return None

    def origin(self, follower: Follower) -> Origin | None:
        value = constant(self.node)
        if value is None:
            return None
        return Origin(
            path=self.path,
            line=self.line,
            said=f"line {self.line}",
            edited=lambda new: self.tree.with_value(self.node, new),
            now=value,
        )
