"""Calls in a loop that take a number out of a tensor only to record it: to add it up, to keep it, or to print it. They
are read from the source; nothing is run.

What the program may decide by such a number, or counts with, is none of them: a comparison, a condition, an index, an
argument of a function that isn't known to record.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, FrozenSet, List, Optional

RECORDS: FrozenSet[str] = frozenset(
    (
        "add", "add_scalar", "add_scalars", "append", "debug", "format", "info", "log", "log_dict", "log_metric",
        "log_metrics", "print", "push", "record", "set_description", "set_description_str", "set_postfix",
        "set_postfix_str", "update", "write",
    )
)  # fmt: skip
"""Last names of functions that only record what they are given."""
_PASSES = (ast.BinOp, ast.UnaryOp, ast.FormattedValue, ast.JoinedStr, ast.Dict, ast.keyword, ast.Tuple, ast.List)
"""What a number goes through on its way to whoever records it."""
_ROUNDS = frozenset(("abs", "float", "int", "round", "str"))
"""Functions that it goes through as well."""
_DEEPEST = 4
"""A number may be given this many names on its way."""


def taken_values(function: Any, line: int) -> Dict[int, bool]:
    """The lines of the innermost loop around `line` that take numbers out of tensors, and whether all that a line takes
    out is only recorded. `function`: the tree of the function that runs there."""
    loop = _loop_around(function, line)
    if loop is None:
        return {}
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    asked = _asked_about(function)
    found: Dict[int, bool] = {}
    nodes: List[Any] = [each for part in loop.body for each in ast.walk(part)]
    for node in nodes:
        if _takes_a_value(node):
            recorded = _is_recorded(node, parents, function, asked, _DEEPEST)
            found[node.lineno] = found.get(node.lineno, True) and recorded
    return found


def _loop_around(function: Any, line: int) -> Any:
    around = [
        node
        for node in ast.walk(function)
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _takes_a_value(node: Any) -> bool:
    """Whether it is `x.item()` or `float(x)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "item" and not node.args
    return isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1


def _asked_about(function: Any) -> FrozenSet[str]:
    """What conditions and comparisons of a function name, as code."""
    tests: List[Any] = []
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            tests.append(node.test)
        elif isinstance(node, ast.Compare):
            tests.append(node)
        elif isinstance(node, ast.Match):
            tests.append(node.subject)
    named = (each for test in tests for each in ast.walk(test))
    return frozenset(ast.unparse(each) for each in named if isinstance(each, (ast.Name, ast.Subscript)))


def _is_recorded(
    node: ast.AST, parents: Dict[ast.AST, ast.AST], function: Any, asked: FrozenSet[str], deepest: int
) -> bool:
    """Whether the value of an expression is only recorded."""
    above = parents.get(node)
    while isinstance(above, _PASSES) or (isinstance(above, ast.Call) and _last_name(above.func) in _ROUNDS):
        node, above = above, parents.get(above)
    if isinstance(above, ast.Call):
        return node is not above.func and _last_name(above.func) in RECORDS
    if isinstance(above, ast.Expr):
        return True
    target = _target(above)
    if target is None or target.id in _shared(function):
        return False
    if isinstance(above, ast.AugAssign) or not isinstance(above.targets[0], ast.Name):  # type: ignore[union-attr]
        return target.id not in asked
    reads = [each for each in ast.walk(function) if _reads(each, target.id)]
    return (
        deepest > 0
        and target.id not in asked
        and all(_is_recorded(each, parents, function, asked, deepest - 1) for each in reads)
    )


def _target(statement: Any) -> Optional[ast.Name]:
    """The variable that an assignment changes, as a whole or at one place of it."""
    target: Any
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return None
    held = target.value if isinstance(target, ast.Subscript) else target
    return held if isinstance(held, ast.Name) else None


def _last_name(called: Any) -> Optional[str]:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _shared(function: Any) -> FrozenSet[str]:
    """Names that others may read, too."""
    nodes = [node for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal))]
    return frozenset(name for node in nodes for name in node.names)
