"""The edit that keeps recorded numbers on their device until a loop is over: source text and the line that takes one
in, `ChangeText` or nothing out. Pure.

`total += loss.item()` becomes `total += loss.detach().float()`, and `total = float(total)` follows the loop; a list of
such numbers is made one of numbers there. Nothing is edited where the loop does anything else with what it records.
"""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.tree import Edit, SourceTree, has_comment, put, small


def recorded_value_change(source: str, line: int) -> ChangeText | None:
    """Take a number that is recorded on `line` (from 1) out of its tensor after the loop."""
    tree = SourceTree.parse(source)
    statement = None if tree is None else tree.innermost(line)
    inner = None if statement is None else small(statement)
    if tree is None or inner is None:
        return None
    loop = tree.loop(inner)
    if not isinstance(loop, cst.For) or loop.orelse is not None or _hands_over(tree, loop):
        return None
    kept = _summed(inner) or _listed(tree, inner, loop)
    if kept is None:
        return None
    name, taken, after = kept
    if sum(each.value == name for each in tree.nodes(cst.Name, within=loop)) != 1:
        return None
    line_after = cst.parse_statement(after, config=tree.module.config_for_parsing)
    edits: dict[cst.CSTNode, Edit] = {
        taken: put(cst.parse_expression(f"{_of(taken)}.detach().float()")),
        loop: lambda node: cst.FlattenSentinel([node, line_after]),
    }
    edited = tree.edited(edits)
    return None if edited is None else as_change(source, edited, line, "")


def _hands_over(tree: SourceTree, loop: cst.For) -> bool:
    """Whether a loop may hand over what it has recorded so far."""
    leaves = tree.nodes((cst.Return, cst.Yield, cst.Await), within=loop.body)
    return bool(leaves or tree.nodes((cst.Global, cst.Nonlocal), within=loop.body))


def _summed(statement: cst.CSTNode) -> tuple[str, cst.Call, str] | None:
    """What `total += loss.item() * n` adds up: the name of the sum, the call, and the line that makes it a number."""
    if not isinstance(statement, cst.AugAssign) or not isinstance(statement.operator, cst.AddAssign):
        return None
    if not isinstance(statement.target, cst.Name):
        return None
    name, taken = statement.target.value, _only_taken(statement.value)
    return None if taken is None else (name, taken, f"{name} = float({name})\n")


def _only_taken(value: cst.CSTNode) -> cst.Call | None:
    """The one call that takes a number, in a product, a quotient or a sum with what takes none."""
    if isinstance(value, cst.Call):
        return value if _takes(value) else None
    if not isinstance(value, cst.BinaryOperation):
        return None
    if not isinstance(value.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
        return None
    left, right = _only_taken(value.left), _only_taken(value.right)
    other = value.right if left is not None else value.left
    return None if _code(other).count("item") else left or right


def _listed(tree: SourceTree, statement: cst.CSTNode, loop: cst.For) -> tuple[str, cst.Call, str] | None:
    """What `losses.append(loss.item())` keeps, as `_summed`, if the list is made in the same function."""
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1 or not isinstance(call.func, cst.Attribute):
        return None
    held, taken = call.func.value, call.args[0].value
    if call.func.attr.value != "append" or not isinstance(held, cst.Name) or not isinstance(taken, cst.Call):
        return None
    scope = tree.function(loop) or tree.module
    made = [each for each in tree.nodes(cst.Assign, within=scope) if _is_empty_list(each, held.value)]
    if not made or not _takes(taken):
        return None
    return held.value, taken, f"{held.value}[:] = [float(each) for each in {held.value}]\n"


def _is_empty_list(assigned: cst.Assign, name: str) -> bool:
    return (
        isinstance(assigned.value, cst.List)
        and not assigned.value.elements
        and any(isinstance(each.target, cst.Name) and each.target.value == name for each in assigned.targets)
    )


def _takes(call: cst.Call) -> bool:
    """Whether it is `something.item()`, without a comment in it."""
    return (
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "item"
        and not call.args
        and not has_comment(call)
    )


def _of(call: cst.Call) -> str:
    """What a call of `item` takes its number from."""
    assert isinstance(call.func, cst.Attribute)
    return _code(call.func.value)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
