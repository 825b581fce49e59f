"""The edit that puts a model and its input into another memory format: source text and a line in, `ChangeText` or
nothing out. Pure."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText


def memory_format_change(source: str, line: int, name: str) -> ChangeText | None:
    """Put the model and what it is called with into `torch.<name>`.

    `line` is one of the call of the model. The input is put in order above that statement, and the model above the
    outermost loop around it in its function; where there is no loop, where the model is made is said in words. Returns
    None where it can't be seen what is called with what.
    """
    text = SourceText.parse(source)
    found = None if text is None else _forward(text.tree, line)
    if text is None or found is None:
        return None
    statement, outer, call = found
    indent, start = text.indent(statement), text.indent(outer)
    if indent is None or start is None:
        return None
    torch = text.torch_name() or "torch"
    form = f".to(memory_format={torch}.{name})"
    model, given = ast.unparse(call.func), ast.unparse(call.args[0])
    above: dict[int, list[str]] = {statement.lineno: [f"{indent}{given} = {given}{form}"]}
    notes = []
    if outer is statement:
        notes.append(f"And write `{model} = {model}{form}` where the model is made.")
    else:
        above.setdefault(outer.lineno, []).append(f"{start}{model} = {model}{form}")
    if text.torch_name() is None:
        notes.append("Import torch in this file.")
    written = [source[: text.starts[0]]]
    for number, each in enumerate(text.lines, 1):
        written += [f"{new}{text.newline}" for new in above.get(number, [])]
        written.append(each)
    edited = "".join(written)
    if SourceText.parse(edited) is None:
        return None
    return as_change(source, edited, min(above), " ".join(notes))


def _forward(tree: ast.Module, line: int) -> tuple[ast.stmt, ast.stmt, ast.Call] | None:
    """The innermost statement on `line`, the outermost loop around it in which the model is not made (or the statement
    itself), and the one call in it that may be the model's."""
    found: tuple[ast.stmt, tuple[ast.stmt, ...]] | None = None
    for statement, path in _statements(tree):
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            found = statement, path
    if found is None or isinstance(found[0], ast.For | ast.While | ast.AsyncFor | ast.If | ast.With):
        return None
    statement, path = found
    functions = _functions(tree)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _may_be_model(node, functions)]
    if len(calls) != 1:
        return None
    loops = [each for each in path if isinstance(each, ast.For | ast.While | ast.AsyncFor)]
    outer = [each for each in loops if not _assigns(each, ast.unparse(calls[0].func))]
    return statement, outer[0] if outer else statement, calls[0]


def _statements(tree: ast.AST, path: tuple[ast.stmt, ...] = ()) -> Iterator[tuple[ast.stmt, tuple[ast.stmt, ...]]]:
    """Every statement with those around it in its function, outermost first; inner ones after outer ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node, path
            scope = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            yield from _statements(node, () if scope else (*path, node))
        else:
            yield from _statements(node, path)


def _functions(tree: ast.Module) -> set[str]:
    """Names that are functions, classes or modules, and no model."""
    names = {"self", *dir(builtins)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return names


def _may_be_model(call: ast.Call, functions: set[str]) -> bool:
    """`model(images)` or `self.net(batch)`; not `relu(x)`, `model(x.float())` or `trainer.fit(model)`."""
    if not call.args or not isinstance(call.args[0], ast.Name):
        return False
    function = call.func
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "self" and function.attr not in functions
    return isinstance(function, ast.Name) and function.id not in functions


def _assigns(loop: ast.stmt, name: str) -> bool:
    targets = [target for node in ast.walk(loop) if isinstance(node, ast.Assign) for target in node.targets]
    return any(ast.unparse(target) == name for target in targets)
