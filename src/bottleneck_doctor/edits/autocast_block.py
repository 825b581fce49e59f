"""The edit that puts forward pass and loss under autocast: source text and lines in, `ChangeText` or nothing out.

What comes out always parses. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits import backward_functions, backward_passes
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.names import until_used
from bottleneck_doctor.edits.tree import LOOPS, SCOPES, Edit, SourceTree, Statement, code, last_name, method_call, small


def autocast_change(
    source: str, forward_line: int, backward_line: int | None, device: str, dtype: str, *, alone: bool = True
) -> ChangeText | None:
    """Put the forward pass and the loss under `torch.autocast`: all up to the backward pass, or all that a function
    does which returns the loss.

    `forward_line` and `backward_line` are lines of the calls of the model and of `.backward()`, None where that is in
    another file; `device` is a device type such as `cuda`; `dtype` is `bfloat16` or `float16`, the second with a
    gradient scaler; `alone`: whether a step makes this backward pass and no other one, so that a function that returns
    a loss is all that it computes. Returns None where the edit can't be made safely.
    """
    tree = SourceTree.parse(source)
    dtype = dtype.removeprefix("torch.")
    if tree is None or dtype not in ("bfloat16", "float16"):
        return None
    step = None if backward_line is None else backward_functions.of_step(tree, backward_line, forward_line)
    if step is not None:
        rows = backward_functions.needed(tree, step, forward_line) if dtype == "bfloat16" else None
        return None if rows is None else _changed(tree, rows, device, dtype)
    found = None if backward_line is None else _passes(tree, forward_line, backward_line)
    if found is None:
        in_function = alone and dtype == "bfloat16"
        return _in_function(tree, forward_line, backward_line, device) if in_function else None
    if dtype == "bfloat16":
        return _changed(tree, found.several or [found.wrapped], device, dtype)
    if found.several or any(backward_passes.takes_gradients(tree, each) for each in found.wrapped):
        # One scaler for several losses takes an edit in more places than these, and so do gradients in a loss.
        return None
    return _with_scaler(tree, found, device)


def _with_scaler(tree: SourceTree, found: _Passes, device: str) -> ChangeText | None:
    """Forward pass and loss under autocast in float16, and the step through a gradient scaler."""
    scaler = next((name for name in ("scaler", "grad_scaler") if not tree.says(name)), None)
    scaled = None if scaler is None else _scaled(found, scaler)
    if scaler is None or scaled is None:
        return None
    torch, quote = tree.torch_name or "torch", tree.quote
    edits, above = _wrapping(tree, [found.wrapped], device, "float16")
    above.setdefault(found.outer, []).append(f"{scaler} = {torch}.amp.GradScaler({quote}{device}{quote})")
    edited = tree.edited({**edits, **scaled}, above)
    note = "Keep one GradScaler for the whole training: make it where the optimizer is made."
    return None if edited is None else as_change(tree.source, edited, tree.lines(found.wrapped[0])[0], note)


def _changed(tree: SourceTree, rows: Sequence[Sequence[Statement]], device: str, dtype: str) -> ChangeText | None:
    """Each row of statements put under an autocast of its own."""
    edits, above = _wrapping(tree, rows, device, dtype)
    edited = tree.edited(edits, above)
    return None if edited is None else as_change(tree.source, edited, min(tree.lines(row[0])[0] for row in rows), "")


def _wrapping(
    tree: SourceTree, rows: Sequence[Sequence[Statement]], device: str, dtype: str
) -> tuple[dict[cst.CSTNode, Edit], dict[Statement, list[str]]]:
    """The edits that put each row of statements, those of one block, under an autocast of its own, and the lines above
    others that they need."""
    torch, quote = tree.torch_name or "torch", tree.quote
    head = f"with {torch}.autocast({quote}{device}{quote}, dtype={torch}.{dtype}):\n    pass"
    edits: dict[cst.CSTNode, Edit] = {}
    for row in rows:
        edits |= dict.fromkeys(row, _gone)
        around = next((each for each in tree.around(row[0]) if isinstance(each, cst.IndentedBlock)), None)
        edits[row[0]] = _under(head, row, None if around is None else around.indent)
    first = tree.first_statement
    return edits, {first: ["import torch"]} if tree.torch_name is None and first is not None else {}


# -- a function that returns the loss ----------------------------------------------------------------------------------


def _in_function(tree: SourceTree, line: int, backward_line: int | None, device: str) -> ChangeText | None:
    """The edit where the forward pass lies in a function that computes the loss, and returns it under a name that says
    so; None where it does not, or where the function also trains or goes on in a loop."""
    inner = tree.innermost(line)
    function = None if inner is None else tree.function(inner)
    if inner is None or function is None or function.asynchronous is not None:
        return None
    block = tree.block(function.body)
    begin = _on(tree, block, line)
    end = small(block[-1]) if block else None
    if begin is None or not isinstance(end, cst.Return) or end.value is None or "loss" not in code(end.value).lower():
        return None
    between = [each for each in (inner, *tree.around(inner)) if tree.holds(function.body, each)]
    # What is computed in the line that returns it belongs to it.
    wrapped = block[begin:] if tree.nodes(cst.Call, within=end) else until_used(tree, block[begin:-1], end.value)
    calls = [last_name(call.func) for each in block[begin:] for call in tree.nodes(cst.Call, within=each)]
    if (
        not wrapped
        or (backward_line is not None and _on(tree, block[begin:], backward_line) is not None)
        or any(isinstance(each, (*LOOPS, *SCOPES)) for each in between)
        or tree.nodes(cst.Yield, within=function.body)
        or {"backward", "step", "zero_grad"} & set(calls)
    ):
        return None
    return _changed(tree, [wrapped], device, "bfloat16")


# -- one block ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Passes:
    """Statements of one block: those of the forward pass and the loss, that of the backward pass, and what follows.
    `outer`: the outermost loop around them within their function, or the first of them where there is none.
    `several`: where a step makes several backward passes, what each of them needs; empty where it makes one."""

    wrapped: Sequence[Statement]
    backward: Statement
    behind: Sequence[Statement]
    outer: Statement
    several: Sequence[Sequence[Statement]] = ()


def _passes(tree: SourceTree, forward_line: int, backward_line: int) -> _Passes | None:
    """None where the two lie in different blocks, or on one line, or the step makes other passes outside of theirs."""
    best: tuple[list[Statement], int, int] | None = None
    for parent in tree.nodes((cst.Module, cst.IndentedBlock)):
        block = tree.block(parent)
        begin, end = _on(tree, block, forward_line), _on(tree, block, backward_line)
        if begin is not None and end is not None and begin < end and not isinstance(block[begin], (*LOOPS, *SCOPES)):
            best = block, begin, end
    if best is None:
        return None
    block, begin, end = best
    several = backward_passes.needed(tree, block, begin, end)
    if several is None or backward_passes.are_elsewhere(tree, block):
        return None
    backward, behind = block[end], block[end + 1 :]
    if isinstance(backward, cst.SimpleStatementLine) and small(backward) is None:
        return None  # What stands before it on its line belongs under autocast.
    # Between loss and backward pass, gradients are cleared, metrics kept, and the next batch fetched. None of that has
    # a place under autocast.
    wrapped = until_used(tree, block[begin:end], backward)
    outer = block[begin]
    for each in tree.around(block[begin]):
        if isinstance(each, SCOPES):
            break
        if isinstance(each, LOOPS):
            outer = each
    return _Passes(wrapped, backward, behind, outer, several)


def _on(tree: SourceTree, block: Sequence[Statement], line: int) -> int | None:
    return next((number for number, each in enumerate(block) if tree.covers(each, line)), None)


def _under(head: str, statements: Sequence[Statement], indent: str | None) -> Edit:
    """The edit that puts the statements under a `with`, which stands below the comments above the first of them.
    `indent`: by how much the block around them is indented; None for as much as is usual in the file."""
    first, *others = statements
    block = cst.IndentedBlock(body=[first.with_changes(leading_lines=()), *others], indent=indent)
    return lambda _: cst.parse_statement(head).with_changes(leading_lines=first.leading_lines, body=block)


def _gone(_: cst.CSTNode) -> cst.RemovalSentinel:
    return cst.RemovalSentinel.REMOVE


def _scaled(found: _Passes, scaler: str) -> dict[cst.CSTNode, Edit] | None:
    """Edits that scale the loss and step through the scaler; None where the shape is another."""
    steps = [each for each in found.behind if _is_method(each, "step") and "sched" not in code(each).lower()]
    if not _is_method(found.backward, "backward") or len(steps) != 1:
        return None
    (step,) = steps
    optimizer = _receiver(step)
    between = found.behind[: list(found.behind).index(step)]
    clip = next((each for each in between if "clip_grad" in code(each)), None)
    if clip is not None and small(clip) is None:
        return None
    scaled = cst.parse_expression(f"{scaler}.scale({_receiver(found.backward)})")
    edits: dict[cst.CSTNode, Edit] = {
        found.backward: lambda line: _called_on(line, scaled),
        step: lambda line: cst.FlattenSentinel(
            [_instead(line, f"{scaler}.step({optimizer})"), cst.parse_statement(f"{scaler}.update()")]
        ),
    }
    if clip is not None:
        unscale = cst.parse_statement(f"{scaler}.unscale_({optimizer})").with_changes(leading_lines=clip.leading_lines)
        edits[clip] = lambda line: cst.FlattenSentinel([unscale, line.with_changes(leading_lines=())])
    return edits


def _is_method(statement: Statement, name: str) -> bool:
    made = method_call(statement)
    return made is not None and made[1].attr.value == name and (name != "step" or not made[0].args)


def _receiver(statement: Statement) -> str:
    """The `loss` of `loss.backward()`."""
    made = method_call(statement)
    assert made is not None
    return code(made[1].value)


def _called_on(line: cst.CSTNode, receiver: cst.BaseExpression) -> cst.CSTNode:
    """`loss.backward()` as a method of something else, with its arguments and its comment."""
    made = method_call(line)
    assert made is not None
    call, method = made
    return line.with_deep_changes(call, func=method.with_changes(value=receiver))


def _instead(line: cst.CSTNode, statement: str) -> cst.CSTNode:
    """Another statement on a line, whose comments stay."""
    return line.with_changes(body=cst.ensure_type(cst.parse_statement(statement), cst.SimpleStatementLine).body)
