"""The edit that puts forward pass and loss under autocast: source text and lines in, `ChangeText` or nothing out.

What comes out always parses. Nothing is read or written here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText


def autocast_change(source: str, forward_line: int, backward_line: int, device: str, dtype: str) -> ChangeText | None:
    """Put the forward pass and the loss, up to the backward pass, under `torch.autocast`.

    `forward_line` and `backward_line` are lines of the calls of the model and of `.backward()`; `device` is a device
    type such as `cuda`; `dtype` is `bfloat16` or `float16`, the second with a gradient scaler. Returns None where the
    two calls are not in one block of statements, or the edit can't be made safely.
    """
    text = SourceText.parse(source)
    dtype = dtype.removeprefix("torch.")
    if text is None or dtype not in ("bfloat16", "float16"):
        return None
    found = _forward_to_backward(text.tree, forward_line, backward_line)
    if found is None:
        return None
    block, begin, end, outer = found
    first, backward = block[begin], block[end]
    # Gradients are often cleared between loss and backward pass; that has no place under autocast.
    last = next(each for each in reversed(block[begin:end]) if each is first or not _method(each, "zero_grad"))
    if _last_line(block[end - 1]) >= backward.lineno or block[block.index(last) + 1].lineno <= _last_line(last):
        return None
    indent = text.indent(first)
    if indent is None or text.indent(backward) != indent:
        return None
    torch = text.torch_name()
    quote = text.quote
    above: dict[int, list[str]] = {}
    replaced: dict[int, str] = {}
    notes = []
    if torch is None:
        torch = "torch"
        above.setdefault(_import_line(text.tree), []).append("import torch")
    if dtype == "float16":
        scaler = next((name for name in ("scaler", "grad_scaler") if not re.search(rf"\b{name}\b", source)), None)
        scaled = None if scaler is None else _scale(text, block, end, indent, scaler)
        start = text.indent(outer)
        if scaled is None or start is None:
            return None
        replaced = scaled
        made = f"{start}{scaler} = {torch}.amp.GradScaler({quote}{device}{quote})"
        above.setdefault(outer.lineno, []).append(made)
        notes.append("Keep one GradScaler for the whole training: make it where the optimizer is made.")
    head = f"{indent}with {torch}.autocast({quote}{device}{quote}, dtype={torch}.{dtype}):"
    above.setdefault(first.lineno, []).append(head)
    left_alone = text.inside_strings()
    written = [source[: text.starts[0]]]
    for number, line in enumerate(text.lines, 1):
        written += [f"{new}{text.newline}" for new in above.get(number, [])]
        wrapped = first.lineno <= number <= _last_line(last) and number not in left_alone and line.strip()
        written.append((text.unit if wrapped else "") + replaced.get(number, line))
    edited = "".join(written)
    if SourceText.parse(edited) is None:
        return None
    return as_change(source, edited, first.lineno, " ".join(notes))


def _blocks(tree: ast.AST, path: tuple[ast.stmt, ...] = ()) -> Iterator[tuple[list[ast.stmt], tuple[ast.stmt, ...]]]:
    """Every list of statements that are executed in a row, with the statements around it, outermost first."""
    for _, value in ast.iter_fields(tree):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value, path
            for statement in value:
                yield from _blocks(statement, (*path, statement))
        elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
            for part in value:
                yield from _blocks(part, path)


def _last_line(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None
    return statement.end_lineno


def _forward_to_backward(
    tree: ast.Module, forward_line: int, backward_line: int
) -> tuple[list[ast.stmt], int, int, ast.stmt] | None:
    """The block, the places in it of the statements with the forward and the backward call, and the outermost loop
    around them within their function (or the first of the two statements where there is none)."""
    best = None
    for block, path in _blocks(tree):
        begin = _place(block, forward_line)
        end = _place(block, backward_line, "backward")
        if begin is not None and end is not None and begin < end and _wrappable(block[begin:end]):
            scope: tuple[ast.stmt, ...] = path
            for number, statement in enumerate(path):
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    scope = path[number + 1 :]
            loops = [statement for statement in scope if isinstance(statement, (ast.For, ast.While, ast.AsyncFor))]
            best = block, begin, end, loops[0] if loops else block[begin]
    return best


def _place(block: list[ast.stmt], line: int, calling: str = "") -> int | None:
    """The statement on `line`; where several share it, the one that speaks of `calling`."""
    places = [number for number, each in enumerate(block) if each.lineno <= line <= _last_line(each)]
    speaking = [number for number in places if calling in ast.unparse(block[number])] if len(places) > 1 else places
    return next(iter(speaking or places), None)


def _wrappable(statements: list[ast.stmt]) -> bool:
    """Whether these may go under one `with`: a loop or a definition around the forward pass is more than that."""
    unsuitable = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(statements[0], unsuitable)


def _scale(text: SourceText, block: list[ast.stmt], end: int, indent: str, scaler: str) -> dict[int, str] | None:
    """New lines, by number, that scale the loss and step through the scaler; None where the shape is another."""
    backward = block[end]
    steps = [each for each in block[end + 1 :] if _method(each, "step") and "sched" not in ast.unparse(each).lower()]
    if not _method(backward, "backward") or len(steps) != 1:
        return None
    step = steps[0]
    changed: dict[int, str] = {}
    clips = [each for each in block[end + 1 : block.index(step)] if "clip_grad" in ast.unparse(each)]
    for statement in (backward, step, *clips[:1]):
        if text.indent(statement) != indent or statement.lineno != _last_line(statement):
            return None
        after = text.lines[statement.lineno - 1].rstrip("\r\n")[len(text.before(text.span(statement)[1])) :]
        if after.strip() and not after.strip().startswith("#"):
            return None
    assert isinstance(backward, ast.Expr)
    assert isinstance(step, ast.Expr)
    loss, optimizer = _receiver(text, backward), _receiver(text, step)
    if loss is None or optimizer is None:
        return None
    line = text.lines[backward.lineno - 1]
    changed[backward.lineno] = f"{indent}{scaler}.scale({loss}){line[len(indent) + len(loss) :]}"
    line = text.lines[step.lineno - 1]
    tail = text.source[text.span(step)[1] : text.starts[step.lineno]]
    changed[step.lineno] = f"{indent}{scaler}.step({optimizer}){tail}"
    if not tail.endswith("\n"):
        changed[step.lineno] += text.newline
    changed[step.lineno] += f"{indent}{scaler}.update(){text.newline}"
    for clip in clips[:1]:
        line = text.lines[clip.lineno - 1]
        changed[clip.lineno] = f"{indent}{scaler}.unscale_({optimizer}){text.newline}{line}"
    return changed


def _method(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == name
        and (name != "step" or not (statement.value.args or statement.value.keywords))
    )


def _receiver(text: SourceText, statement: ast.Expr) -> str | None:
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    start, end = text.span(call.func.value)
    if start != text.span(statement)[0]:
        return None
    return text.source[start:end]


def _import_line(tree: ast.Module) -> int:
    """The line before which `import torch` goes."""
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            return statement.lineno
    return 1
