"""A step that makes several backward passes, as the two of a GAN do: which statements lead to each of them. Pure.

What is switched on for forward pass and loss must not stay on over a backward pass, or over a step of the optimizer,
between two of them. Autocast keeps the weights that it has converted until it is left, so the next forward pass would
compute with weights from before the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.names import changed, names, until_used
from bottleneck_doctor.edits.tree import LOOPS, SCOPES, SourceTree, Statement, code, last_name, method_call

_OF_OPTIMIZERS = ("step", "zero_grad", "update")
_OF_LOSSES = {"backward", "scale", "sum", "mean"}
"""What may be called in the line of a backward pass: no forward pass lies there."""


def needed(tree: SourceTree, block: Sequence[Statement], forward: int, backward: int) -> list[list[Statement]] | None:
    """What each backward pass of a block needs, without what it does not; empty where there is one pass only. None
    where one of several has its forward pass on the same line.

    `forward` and `backward`: the numbers of the statements with the first forward and the last backward pass.
    """
    passes = sorted({backward, *_passes(tree, block)})
    if len(passes) < 2:
        return []
    if any(computes(tree, each) for end in passes for each in tree.nodes(cst.SimpleStatementLine, block[end])):
        return None
    rows = []
    for begin, end in zip([0, *(each + 1 for each in passes[:-1])], passes, strict=True):
        inner = _inside(tree, block[end])
        if begin <= forward < end:
            # It is known where this forward pass begins.
            rows.append(until_used(tree, block[forward:end], block[end]))
        elif not inner:
            rows.append(leads_to(tree, block[begin:end], block[end]))
        rows += inner
    return [row for row in rows if row]


def are_elsewhere(tree: SourceTree, block: Sequence[Statement]) -> bool:
    """Whether what a block is a part of makes backward passes outside of it in the same loop, or in the same function
    where there is none: as a critic does that the block for a generator follows. What is done instead of the block, as
    in the other branch of an `if`, is none of these."""
    around = tree.around(block[0])
    until = next((each for each in around if isinstance(each, (*LOOPS, *SCOPES))), tree.module)
    passes = [call for call in tree.nodes(cst.Call, until) if last_name(call.func) == "backward"]
    here = [call for call in passes if tree.function(call) is tree.function(block[0])]
    others = [call for call in here if not any(tree.holds(each, call) for each in block)]
    return not all(is_instead(tree, call, block[0]) for call in others)


def is_instead(tree: SourceTree, node: cst.CSTNode, of: cst.CSTNode) -> bool:
    """Whether a node is reached in place of another: in the other branch of an `if`, or in a handler of the `try` that
    has the other one outside of this handler."""
    for branch in (node, *tree.around(node)):
        parent = next(tree.around(branch), None)
        others: list[cst.CSTNode | None] = []
        if isinstance(parent, cst.If) and branch in (parent.body, parent.orelse):
            others = [parent.orelse if branch is parent.body else parent.body]
        elif isinstance(branch, cst.ExceptHandler) and not tree.holds(branch, of):
            others = [parent]
        if any(each is not None and tree.holds(each, of) for each in others):
            return True
    return False


def takes_gradients(tree: SourceTree, statement: Statement) -> bool:
    """Whether a statement takes gradients that are a part of the loss, as for a gradient penalty, by itself or in a
    function of the file that it calls. In float16 these have to be scaled as well."""
    called = {last_name(call.func) for call in tree.nodes(cst.Call, statement)}
    parts = [statement, *(each for each in tree.nodes(cst.FunctionDef) if each.name.value in called)]
    calls = [call for part in parts for call in tree.nodes(cst.Call, part) if last_name(call.func) == "grad"]
    given = [each.keyword.value for call in calls for each in call.args if each.keyword is not None]
    return "create_graph" in given or any(code(call.func).endswith("autograd.grad") for call in calls)


def _inside(tree: SourceTree, statement: Statement) -> list[list[Statement]]:
    """The same for the backward passes in the blocks of a statement, as far as something is called for them there."""
    rows = []
    for inner in tree.nodes(cst.IndentedBlock, statement):
        block, begin = tree.block(inner), 0
        for end in _passes(tree, block) if tree.function(inner) is tree.function(statement) else ():
            rows.append(leads_to(tree, block[begin:end], block[end]))
            begin = end + 1
    return [row for row in rows if any(tree.nodes(cst.Call, each) for each in row)]


def _passes(tree: SourceTree, block: Sequence[Statement]) -> list[int]:
    """The numbers of the statements that make backward passes."""
    return [number for number, each in enumerate(block) if _goes_back(tree, each)]


def _goes_back(tree: SourceTree, statement: Statement) -> bool:
    if isinstance(statement, SCOPES):
        return False
    calls = [call for call in tree.nodes(cst.Call, statement) if last_name(call.func) == "backward"]
    return any(tree.function(call) is tree.function(statement) for call in calls)


def computes(tree: SourceTree, line: cst.SimpleStatementLine) -> bool:
    """Whether a line makes a backward pass and something else."""
    called = {last_name(call.func) for call in tree.nodes(cst.Call, line)}
    return "backward" in called and (len(line.body) > 1 or bool(called - _OF_LOSSES))


def leads_to(tree: SourceTree, statements: Sequence[Statement], end: Statement) -> list[Statement]:
    """From the first to the last of those that make what `end` uses."""
    wanted, used = names(tree, end), []
    for number in reversed(range(len(statements))):
        if changed(tree, statements[number]) & wanted and not _is_of_optimizer(statements[number]):
            wanted |= names(tree, statements[number])
            used.append(number)
    return list(statements[used[-1] : used[0] + 1]) if used else []


def _is_of_optimizer(statement: Statement) -> bool:
    made = method_call(statement)
    return made is not None and made[1].attr.value in _OF_OPTIMIZERS
