"""The edit that puts lines before the training loop: source text and a line of the loop in, `ChangeText` or nothing
out. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def before_loop_change(source: str, line: int, lines: Sequence[str], module: str) -> ChangeText | None:
    """Put `lines` before the outermost loop around `line`, and `import module` at the top where it is not there.

    None where it is not certain that the loop is entered once, after everything was made: in a function that makes
    neither the optimizer nor a loader, which may be called for every epoch.
    """
    text = SourceText.parse(source)
    if text is None:
        return None
    scope = _scope(text.tree, line)
    loop = next((each for each in _own_statements(scope) if _is_loop(each) and _around(each, line)), None)
    if loop is None or (not isinstance(scope, ast.Module) and not _makes_all(scope, loop)):
        return None
    indent = text.indent(loop)
    if indent is None:
        return None
    begin = text.starts[loop.lineno - 1]
    edited = source[:begin] + "".join(f"{indent}{each}{text.newline}" for each in lines) + source[begin:]
    if not _is_imported(text.tree, module):
        place = _place_of_imports(text)
        edited = edited[:place] + f"import {module}{text.newline}" + edited[place:]
    after = SourceText.parse(edited)
    return None if after is None else as_change(source, edited, loop.lineno, "")


def _around(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _is_loop(node: ast.stmt) -> bool:
    return isinstance(node, ast.For | ast.While)


def _scope(tree: ast.Module, line: int) -> Scope:
    """The innermost function around a line, or the module."""
    inside: Scope = tree
    for node in ast.walk(tree):
        # Breadth first: who comes later lies deeper.
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _around(node, line):
            inside = node
    return inside


def _own_statements(scope: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a scope, outer ones first, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _own_statements(node)


def _makes_all(scope: ast.AST, loop: ast.stmt) -> bool:
    """Whether the scope makes an optimizer or a loader before the loop: what is called for every epoch makes none."""
    before = [each for each in _own_statements(scope) if (each.end_lineno or 0) < loop.lineno]
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for each in before
        for node in ast.walk(each)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return "parameters" in names or any(name.endswith("DataLoader") for name in names)


def _is_imported(tree: ast.Module, module: str) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name == module and alias.asname is None for alias in node.names)
        for node in tree.body
    )


def _place_of_imports(text: SourceText) -> int:
    """Before the first import that is none from `__future__`, or before the first statement behind the docstring."""
    behind = [
        node
        for node in text.tree.body
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    imports = [node for node in behind if isinstance(node, ast.Import | ast.ImportFrom)]
    first = (imports or behind)[0]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    return text.starts[min([first.lineno, *(each.lineno for each in decorators)]) - 1]
