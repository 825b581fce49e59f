"""The edit that takes calls out: source text and the lines of calls in, `ChangeText` or nothing out. Pure.

The tree says what goes; it goes by whole lines of the text, since comments and blank lines above a statement are a part
of it in the tree, and have to stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import SourceTree, Statement, is_program, last_name, small

DOING = (cst.Call, cst.NamedExpr, cst.Await)


def removal_change(source: str, calls: Sequence[tuple[str, int]]) -> ChangeText | None:
    """Take calls out of `source`. `calls`: what is called (`gc.collect`) and its line, counted from 1.

    A statement that is nothing but the call goes with its lines, and an `if` with it that holds nothing else and only
    compares; where something has to stand, `pass` does. A call whose value is used, or that shares its line with
    something else, is named in the note. None where `source` has no such call there.
    """
    tree = SourceTree.parse(source)
    if tree is None:
        return None
    gone: list[Statement] = []
    named: list[str] = []
    for name, line in calls:
        there = _calls_on(tree, name, line)
        if not there:
            return None
        alone = [each for call in there if (each := _nothing_but(tree, call)) is not None]
        gone += [each for each in alone if each not in gone]
        named += [] if alone else [f"Remove `{name}()` in line {line}."]
    first = min((line for _, line in calls), default=1)
    edited = without(tree, gone)
    if not is_program(edited):
        return None
    if edited == source:
        return ChangeText(line=first, diff="", note=" ".join(named))
    return as_change(source, edited, first, " ".join(named))


def _calls_on(tree: SourceTree, name: str, line: int) -> list[cst.Call]:
    """The calls of this name on a line, or the only call there, which may go by another name."""
    there = tree.calls_on(line)
    called = [call for call in there if last_name(call.func) == name.rpartition(".")[2]]
    return called or (there if len(there) == 1 else [])


def _nothing_but(tree: SourceTree, call: cst.Call) -> Statement | None:
    """The statement that is nothing but this call and has its lines to itself."""
    statement = tree.statement(call)
    inner = None if statement is None else small(statement)
    return statement if isinstance(inner, cst.Expr) and inner.value is call else None


def without(tree: SourceTree, statements: Sequence[Statement]) -> str:
    """The source without some statements. A block of which nothing is left goes as a whole where it may, or keeps a
    `pass`."""
    gone = list(statements)
    # Not splitlines: it also breaks at form feeds and separators, which Python does not.
    lines = re.findall(r"[^\n]*\n|[^\n]+", tree.source)
    kept: list[Statement] = []
    for block in reversed(tree.nodes(cst.IndentedBlock)):
        here = [each for each in tree.block(block) if each in gone]
        if len(here) < len(block.body):
            continue
        owner = next(tree.around(block))
        if isinstance(owner, cst.If) and owner.orelse is None and _may_go(tree, owner):
            gone = [each for each in gone if each not in here] + [owner]
        else:
            kept.append(here[0])
    for each in sorted(gone, key=tree.place, reverse=True):
        (first, column), (last, end) = tree.place(each), tree.end(each)
        left = [lines[first - 1][:column] + "pass" + lines[last - 1][end:]] if each in kept else []
        lines[first - 1 : last] = left
    return "".join(lines)


def _may_go(tree: SourceTree, owner: cst.If) -> bool:
    """Whether an `if` does nothing but look. An `elif` shares its place with the `if` before it."""
    is_elif = isinstance(next(tree.around(owner)), cst.If)
    return not is_elif and not tree.nodes(DOING, within=owner.test)
