"""The edit that makes a call before training begins: source text and the call in, `ChangeText` or nothing out. Pure.

Where the file makes such a call already, its argument is changed; else the call goes below the imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText


def call_change(source: str, code: str) -> ChangeText | None:
    """Make the call `code`, such as `torch.set_num_threads(4)`, once and before training begins.

    `code` calls a function of torch's with one constant. Returns None where `source` is not a program.
    """
    text = SourceText.parse(source)
    wanted = ast.parse(code, mode="eval").body
    if text is None or not isinstance(wanted, ast.Call):
        return None
    value = ast.unparse(wanted.args[0])
    made = [call for call in _calls(text.tree) if _name(call) == _name(wanted)]
    if made:
        return _changed(text, made, value)
    return _added(text, code)


def _changed(text: SourceText, made: list[ast.Call], value: str) -> ChangeText:
    """The calls that are there, with another argument. One that isn't written out, such as an option of the user's
    program, is not touched."""
    first = min(call.lineno for call in made)
    given = [call.args[0] if call.args else next((each.value for each in call.keywords), None) for call in made]
    if not all(isinstance(each, ast.Constant) for each in given):
        return ChangeText(line=first, diff="", note=f"Line {first} sets this value now: set it to `{value}` there.")
    edited = text.source
    for begin, end in sorted((text.span(each) for each in given if each is not None), reverse=True):
        edited = edited[:begin] + value.replace("'", text.quote) + edited[end:]
    return as_change(text.source, edited, first, "")


def _added(text: SourceText, code: str) -> ChangeText | None:
    """Below the imports at the top of the file, and below that of torch."""
    name = text.torch_name()
    lines = [] if name else ["import torch"]
    lines.append(code.replace("torch.", f"{name or 'torch'}.", 1).replace('"', text.quote))
    below = _imports_end(text.tree)
    place = text.starts[min(below, len(text.lines))]
    missing = "" if text.source[:place].endswith(("\n", "\ufeff")) or not place else text.newline
    added = missing + "".join(f"{each}{text.newline}" for each in lines)
    edited = text.source[:place] + added + text.source[place:]
    if SourceText.parse(edited) is None:
        return None
    return as_change(text.source, edited, below + 1, "")


def _imports_end(tree: ast.Module) -> int:
    """The last line of the imports that begin the file, or of a later one of torch; 0 where there are none."""
    end = 0
    leading = True
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        imports = isinstance(statement, ast.Import | ast.ImportFrom)
        leading = leading and (docstring or imports)
        if leading or (isinstance(statement, ast.Import) and any(each.name == "torch" for each in statement.names)):
            end = statement.end_lineno or statement.lineno
    return end


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """All calls but those of functions that set a worker up, which say nothing of the process that trains."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call):
            yield node
        if not (isinstance(node, ast.FunctionDef) and "worker" in node.name):
            yield from _calls(node)


def _name(call: ast.Call) -> str:
    """`set_num_threads` of `torch.set_num_threads(4)`."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
