"""The edit that takes calls out: source text and the lines of calls in, `ChangeText` or nothing out. Pure."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText


def removal_change(source: str, calls: Sequence[tuple[str, int]]) -> ChangeText | None:
    """Take calls out of `source`. `calls`: what is called (`gc.collect`) and its line, counted from 1.

    A statement that is nothing but the call goes with its lines, and an `if` with it that holds nothing else and only
    compares; where something has to stand, `pass` does. A call whose value is used, or that shares its line with
    something else, is named in the note. None where `source` has no such call there.
    """
    text = SourceText.parse(source)
    if text is None:
        return None
    statements: list[ast.Expr] = []
    named: list[str] = []
    first = min((line for _, line in calls), default=1)
    for name, line in calls:
        places = _calls_on(text.tree, name, line)
        if not places:
            return None
        alone = [each for each in _statements(text.tree) if each.value in places and _owns_its_lines(text, each)]
        if alone:
            statements += [each for each in alone if each not in statements]
        else:
            named.append(f"Remove `{name}()` in line {line}.")
    edits = _edits(text, statements)
    edited = source
    for begin, end, new in sorted(edits, reverse=True):
        edited = edited[:begin] + new + edited[end:]
    if SourceText.parse(edited) is None:
        return None
    if edited == source:
        return ChangeText(line=first, diff="", note=" ".join(named))
    return as_change(source, edited, first, " ".join(named))


def _calls_on(tree: ast.Module, name: str, line: int) -> list[ast.Call]:
    """The calls of this name on a line, or the only call there, which may go by another name."""
    there = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    last = name.rpartition(".")[2]
    called = [
        node
        for node in there
        if (isinstance(node.func, ast.Attribute) and node.func.attr == last)
        or (isinstance(node.func, ast.Name) and node.func.id == last)
    ]
    return called or (there if len(there) == 1 else [])


def _statements(tree: ast.Module) -> list[ast.Expr]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]


def _owns_its_lines(text: SourceText, statement: ast.stmt) -> bool:
    """Whether nothing but a comment shares the lines of a statement."""
    if text.indent(statement) is None:
        return False
    rest = text.lines[(statement.end_lineno or 1) - 1]
    behind = rest.encode()[statement.end_col_offset or 0 :].decode().strip()
    return not behind or behind.startswith("#")


def _edits(text: SourceText, statements: Sequence[ast.stmt]) -> list[tuple[int, int, str]]:
    """Spans and what comes in their place. A block of which nothing is left goes as a whole where it may, or keeps a
    `pass`."""
    gone = list(statements)
    edits: list[tuple[int, int, str]] = []
    for block, owner in _blocks(text.tree):
        here = [each for each in block if each in gone]
        if not here or len(here) < len(block):
            continue
        if isinstance(owner, ast.If) and not owner.orelse and _only_compares(owner.test) and _may_go(text, owner):
            gone = [each for each in gone if each not in here] + [owner]
        else:
            gone.remove(here[0])
            edits.append((*text.span(here[0]), "pass"))
    for each in gone:
        begin = text.starts[each.lineno - 1]
        last = each.end_lineno or each.lineno
        end = text.starts[last] if last < len(text.starts) else len(text.source)
        edits.append((begin, end, ""))
    return edits


def _may_go(text: SourceText, owner: ast.If) -> bool:
    """An `elif` shares its place with the `if` before it."""
    line = text.lines[owner.lineno - 1].lstrip()
    return line.startswith("if") and _owns_its_lines(text, owner)


def _blocks(tree: ast.Module) -> list[tuple[list[ast.stmt], ast.AST]]:
    """Every list of statements with what it belongs to, the innermost first."""
    found: list[tuple[list[ast.stmt], ast.AST]] = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                found.append((block, node))
    return found[::-1]


def _only_compares(test: ast.expr) -> bool:
    """Whether a condition does nothing but look."""
    doing = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return not any(isinstance(node, doing) for node in ast.walk(test))
