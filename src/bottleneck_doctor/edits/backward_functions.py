"""A step whose backward passes lie in functions that it calls, as in a class with `forward` and `backward_G`. Pure.

Only functions of one file are known, by their names: those of the module, and of the class where they are called on
`self`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits import backward_passes
from bottleneck_doctor.edits.tree import SourceTree, Statement, last_name


@dataclass(frozen=True)
class Step:
    """`caller`: what every step runs. `functions`: those with backward passes of their own that it calls, or that what
    it calls does, in the order of the file."""

    caller: cst.FunctionDef
    functions: list[cst.FunctionDef]


def of_step(tree: SourceTree, backward_line: int, forward_line: int | None = None) -> Step | None:
    """The step that the function with this backward pass is called in: the nearest that calls another such function as
    well, or computes something at `forward_line`. None where none does, or where the function goes on in a loop."""
    own = _with_pass(tree, backward_line)
    waiting, seen = [own] if own is not None else [], []
    inside = None if forward_line is None else tree.innermost(forward_line)
    while waiting:
        function = waiting.pop(0)
        seen.append(function)
        for call in tree.nodes(cst.Call):
            caller = tree.function(call)
            if _called(tree, call) is not function or caller is None or caller in seen:
                continue
            some = [each for each in _below(tree, caller, beside=call) if each is not caller and _passes(tree, each)]
            if len(some) > 1 or (inside is not None and tree.function(inside) is caller):
                return Step(caller, some)
            if tree.loop(call) is None:  # What calls a loop is no step.
                waiting.append(caller)
    return None


def needed(tree: SourceTree, step: Step, forward_line: int) -> list[list[Statement]] | None:
    """What leads to the backward passes of a step: the statement that calls the model in `step.caller`, and what each
    function computes before its backward passes. None where the model is called anywhere else, or where a function does
    more than go back where it does."""
    begin = tree.innermost(forward_line)
    if begin is None:
        return None
    rows: list[list[Statement]] = []
    if tree.function(begin) is step.caller:
        rows.append([begin])
    for function in step.functions:
        block, start, passes = tree.block(function.body), 0, _passes(tree, function)
        goes_back = [any(tree.holds(each, call) for call in passes) for each in block]
        for end in (number for number, each in enumerate(goes_back) if each):
            row = backward_passes.leads_to(tree, block[start:end], block[end])
            if not row or not _only_goes_back(tree, block[end]):
                return None
            rows.append(row)
            start = end + 1
    inside = any(tree.covers(each, forward_line) for row in rows for each in row)
    calls = [call for row in rows for each in row for call in tree.nodes(cst.Call, each)]
    reached = {id(each) for call in calls for each in _and_below(tree, _called(tree, call))}
    return rows if inside and not reached & {id(each) for each in step.functions} else None


def _with_pass(tree: SourceTree, line: int) -> cst.FunctionDef | None:
    statement = tree.innermost(line)
    function = None if statement is None else tree.function(statement)
    return function if function is not None and _passes(tree, function) else None


def _passes(tree: SourceTree, function: cst.FunctionDef) -> list[cst.Call]:
    """The backward passes that a function makes itself, none of them in a loop; empty where one is."""
    calls = [call for call in tree.nodes(cst.Call, function) if last_name(call.func) == "backward"]
    own = [call for call in calls if tree.function(call) is function and _called(tree, call) is None]
    return [] if any(tree.loop(call) is not None for call in own) else own


def _only_goes_back(tree: SourceTree, statement: Statement) -> bool:
    """Whether no line of a statement computes something else than backward passes."""
    lines = tree.nodes(cst.SimpleStatementLine, statement)
    called = [{last_name(call.func) for call in tree.nodes(cst.Call, line)} for line in lines]
    return all("backward" in each for each in called) and not any(
        backward_passes.computes(tree, each) for each in lines
    )


def _called(tree: SourceTree, call: cst.Call) -> cst.FunctionDef | None:
    """The function of this file that a call is of; None where that is not known."""
    name = call.func
    body: Sequence[cst.CSTNode] = ()
    if isinstance(name, cst.Name):
        body = tree.module.body
    elif isinstance(name, cst.Attribute) and isinstance(name.value, cst.Name) and name.value.value == "self":
        kind = next((each for each in tree.around(call) if isinstance(each, cst.ClassDef)), None)
        body = () if kind is None else kind.body.body
    functions = (each for each in body if isinstance(each, cst.FunctionDef))
    return next((each for each in functions if each.name.value == last_name(name)), None)


def _below(tree: SourceTree, function: cst.FunctionDef, beside: cst.Call | None = None) -> list[cst.FunctionDef]:
    """What a function calls, and what that does. `beside`: a call of its own, and of its others only those count that
    are made together with this one."""
    found: list[cst.FunctionDef] = []
    calls = tree.nodes(cst.Call, function)
    if beside is not None:
        around = tree.loop(beside) or function
        calls = [
            call for call in calls if tree.holds(around, call) and not backward_passes.is_instead(tree, call, beside)
        ]
    while calls:
        called = _called(tree, calls.pop())
        if called is not None and all(called is not each for each in found):
            found.append(called)
            calls += tree.nodes(cst.Call, called)
    return sorted(found, key=tree.place)


def _and_below(tree: SourceTree, function: cst.FunctionDef | None) -> list[cst.FunctionDef]:
    return [] if function is None else [function, *_below(tree, function)]
