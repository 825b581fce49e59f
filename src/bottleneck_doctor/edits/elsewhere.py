"""A value that the user's code takes from somewhere else, changed there: in the text, or by a word of the command line.

Texts are written into `Drafts`; nothing else is."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.documents.report import ChangedWords
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.loader_target import makes_loader
from bottleneck_doctor.edits.origin.definition import Expression, Origin
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import SourceTree, code, constant, last_name, said
from bottleneck_doctor.wording import words


@dataclass(frozen=True)
class Elsewhere:
    """Where the value of `name` is written. `at`: what the user's code says for it, with its stars in `spelled`."""

    name: str
    value: object
    at: Expression
    spelled: str
    origin: Origin

    @property
    def is_there(self) -> bool:
        """Whether it has that value already."""
        command, now = self.origin.command, self.origin.now
        if command is not None and command.given:
            return command.needed(self.value) == command.given
        return now is not None and type(now[0]) is type(self.value) and now[0] == self.value

    def clashes(self, other: Elsewhere) -> bool:
        """Whether the two are written in one place, and it can't have both values."""
        places = [(each.origin.path, each.origin.line, each.origin.said) for each in (self, other)]
        return places[0] == places[1] and self.value != other.value


def reaches(origin: Origin, value: object) -> bool:
    """Whether a value can be given there: in the text, or by words."""
    command = origin.command
    return bool(command is not None and (command.given or command.needed(value))) or origin.edited(value) is not None


def followed(drafts: Drafts, follower: Follower, at: Expression, name: str, value: object) -> list[Told]:
    """Write the value of an expression where that takes it from; nothing is told where it is not followed, or has that
    value already."""
    origin = None if constant(at.node) is not None else follower.origin(at)
    if origin is None or not reaches(origin, value):
        return []
    there = Elsewhere(name, value, at, said(at.node), origin)
    return [] if there.is_there else write_elsewhere(drafts, there, follower, at.path, at.line)


def write_elsewhere(drafts: Drafts, there: Elsewhere, follower: Follower, file: str, line: int) -> list[Told]:
    """Write the value where it comes from, and say where that is. `file`, `line`: the call that takes it."""
    origin, name = there.origin, there.name
    command = origin.command
    needed = "" if command is None else command.needed(there.value)
    if command is not None and command.given:
        note = f"Your command line gives {name} its value: write `{needed}` there in place of `{command.given}`."
        if not needed:
            note = f"Leave `{command.given}` out of your command line: it gives {name} its value."
        return [Told(file, line, note, words=(ChangedWords(before=command.given, after=needed),))]
    text = origin.edited(there.value)
    if text is None:
        note = f"Start it with `{needed}`, which gives {name} its value."
        return [Told(file, line, note, words=(ChangedWords(before="", after=needed),))]
    drafts.write(origin.path, text)
    notes = [f"`{there.spelled}` takes its value from {origin.said}."]
    notes += [f"`{needed}` on the command line does the same."] if needed else []
    return [Told(origin.path, origin.line, " ".join([*notes, *_shared(there, follower)]))]


def _shared(there: Elsewhere, follower: Follower) -> list[str]:
    """What else takes the value from there: other loaders of the file, other lines, other calls of the function."""
    tree, node = there.at.tree, there.at.node
    loaders: list[int] = []
    lines: list[int] = []
    for other in _other_reads(tree, node):
        call = next((each for each in tree.around(other) if isinstance(each, cst.Call)), None)
        loader = call if call is not None and makes_loader(tree, call) else None
        (lines if loader is None else loaders).append(tree.lines(loader or other)[0])
    notes = []
    if loaders:
        one = len(loaders) == 1
        notes.append(f"The {'loader' if one else 'loaders'} in {_lines(loaders)} {'gets' if one else 'get'} it too.")
    if lines:
        notes.append(f"`{said(node)}` is read in {_lines(lines)} too.")
    function = tree.function(node)
    calls = [] if function is None else follower.callers(there.at.path, function.name.value)
    if function is not None and len(calls) > 1:
        notes.append(f"`{function.name.value}` is called {len(calls)} times, and each of its loaders gets it.")
    return notes


def _lines(numbers: list[int]) -> str:
    told = [str(number) for number in dict.fromkeys(numbers)]
    return f"{'line' if len(told) == 1 else 'lines'} {words.listed(told)}"


def _other_reads(tree: SourceTree, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Other places of the file that read the same."""
    if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
        return []
    scope = tree.scope(node)
    found: list[cst.BaseExpression] = []
    for other in tree.nodes(type(node)):
        if other is node or last_name(other) != last_name(node) or code(other) != code(node):
            continue
        there = tree.scope(other)
        if isinstance(node, cst.Name) and (there is None or scope is None or there[node.value] != scope[node.value]):
            continue
        parent = next(tree.around(other))
        if not any(getattr(parent, name, None) is other for name in ("target", "keyword", "attr", "name")):
            found.append(other)
    return found
