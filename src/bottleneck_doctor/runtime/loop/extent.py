"""How long a program will go on training, by what it says itself: the ranges and limits of the loops around the step.

Frames of a running program go in. Nothing is called: values are read from frames, and from the dictionaries of objects,
so that no property of the user's runs. What can't be told for certain is not told.
"""

from __future__ import annotations

import ast
import linecache
import os
from types import FrameType
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..process.user_code import LIBRARY_MARKS, OWN_FOLDER, is_users_file
from .known_values import SIZED, NotTold, known_names, value_of, whole
from .trainers import of_trainer

_PROGRESS = ("tqdm", "trange", "track", "progress_bar", "notebook_tqdm", "tqdm_notebook")
"""Functions of other libraries that hand on what they are given, by the last part of their name."""
_HANDS_ON = (
    "torch",
    "tqdm",
    "rich",
    "accelerate",
    os.path.join("lightning", "fabric"),
    "lightning_fabric",
    "hydra",
    "click",
    "typer",
    "fire",
    "absl",
)
"""Libraries that take each batch once, and call the user's functions once: they turn no loop of their own around the
user's. Folders of site-packages."""
_ENOUGH = 3
"""Turns of a loop after which it is known how many steps each of them takes."""

For = Union[ast.For, ast.AsyncFor]
Loop = Union[ast.For, ast.AsyncFor, ast.While]


class Extent(NamedTuple):
    """`epochs`, or `steps` (batches; steps in a loop without a loader) of the whole run; None is unknown.

    `may_end_sooner`: the program can leave one of these loops before its end. `trainer`: `Found.trainer`.
    """

    epochs: Optional[int] = None
    steps: Optional[int] = None
    may_end_sooner: bool = False
    trainer: str = ""


UNKNOWN = Extent()


class _Turns(NamedTuple):
    """How often a loop turns, and how often it has turned (None where that can't be read). `counted`: by a variable
    that is taken to have begun at the first turn, which has to agree with the steps that were taken."""

    times: int
    done: Optional[int]
    counted: bool = False


def extent_of(frame: Optional[FrameType], taken: int) -> Extent:
    """What the callers of `frame` say. `taken`: batches (or steps) that the loop took before this one.

    Where the user's line that asks for the batch is the head of a loop over the loader, loops around it count epochs.
    Elsewhere they count steps, if so far each turn was found to take the same number of them.
    """
    trained = of_trainer(frame)
    if trained is not None:
        length, trainer = trained
        return Extent(*length, trainer)
    around: List[_Turns] = []
    over_loader = may_end = inside = False
    try:
        for each in _users(frame):
            for loop, in_head in _loops_around(each):
                if isinstance(loop, ast.While):
                    limit = _limit(loop)
                    around.append(_turns_until(limit, loop, each))
                    may_end = may_end or _may_be_left(loop, limit.end)
                elif in_head:
                    # A loop over batches: over the loader, or over what hands its batches on.
                    over_loader = over_loader or not inside
                    may_end = may_end or _takes_a_part(loop) or _may_be_left(loop)
                else:
                    around.append(_turns(loop, each))
                    may_end = may_end or _may_be_left(loop)
                inside = True
    except NotTold:
        return UNKNOWN
    if over_loader:
        if any(turns.counted and turns.done != 0 for turns in around):
            return UNKNOWN  # Where a counter began is not known, and this is not the first epoch.
        return Extent(epochs=_product(around), may_end_sooner=may_end)
    a_turn = _steps_a_turn(around, taken)
    return UNKNOWN if a_turn is None else Extent(steps=a_turn * _product(around), may_end_sooner=may_end)


def _product(around: List[_Turns]) -> int:
    product = 1
    for turns in around:
        product *= turns.times
    return product


def _steps_a_turn(around: List[_Turns], taken: int) -> Optional[int]:
    """How many steps one turn of the innermost loop takes; None if the turns so far do not tell."""
    turned, weight = 0, 1
    for turns in around:
        if turns.done is None:
            return None
        turned += turns.done * weight
        weight *= turns.times
    if turned < _ENOUGH:
        return None
    a_turn = taken // turned
    return a_turn if a_turn >= 1 and taken - a_turn * turned <= a_turn else None


def _users(frame: Optional[FrameType]) -> Iterator[FrameType]:
    """The user's frames, innermost first. Raises `NotTold` where another library may turn a loop around them."""
    others = False
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_file(name):
            if others:
                raise NotTold
            yield frame
        else:
            others = others or _may_loop(name)
        frame = frame.f_back


def _may_loop(name: str) -> bool:
    if name.startswith(OWN_FOLDER):
        return False
    for mark in LIBRARY_MARKS:
        _, found, inside = name.rpartition(mark)
        if found:
            return not any(inside == each or inside.startswith((each + os.sep, each + ".py")) for each in _HANDS_ON)
    return False


# -- which loops stand around a line -----------------------------------------------------------------------------------


def _loops_around(frame: FrameType) -> List[Tuple[Loop, bool]]:
    """The loops around the line that runs in this frame, innermost first, and whether that line is the head of a `for`.

    Raises `NotTold` where there is no source, and for comprehensions and loops on one line.
    """
    if frame.f_code.co_name == "<lambda>":
        return []  # No statement fits into one.
    try:
        lines = linecache.getlines(os.path.abspath(frame.f_code.co_filename), frame.f_globals)
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        raise NotTold from None
    line = frame.f_lineno
    if not 1 <= line <= len(lines):
        raise NotTold
    loops: List[Tuple[Loop, bool]] = []
    for node in _own_nodes(_scope(tree, frame)):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.lineno <= line <= (node.end_lineno or 0):
            head = node.test if isinstance(node, ast.While) else node.iter
            head_ends = head.end_lineno or head.lineno
            if node.body[0].lineno <= head_ends:
                raise NotTold
            if node.orelse and line >= node.orelse[0].lineno:
                continue  # After the loop.
            loops.append((node, line <= head_ends and not isinstance(node, ast.While)))
    return sorted(loops, key=lambda entry: -entry[0].lineno)


def _scope(tree: ast.Module, frame: FrameType) -> Any:
    """The module, or the function whose code runs in this frame. Raises `NotTold` where it is not found."""
    if frame.f_code.co_name == "<module>":
        return tree
    first = frame.f_code.co_firstlineno  # The line of the first decorator, if there is one.
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == frame.f_code.co_name:
            begins = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begins == first:
                return node
    raise NotTold


def _own_nodes(scope: Any) -> Iterator[ast.AST]:
    """The nodes of a scope without those of functions and classes inside it."""
    queue: List[ast.AST] = list(scope.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            queue.extend(ast.iter_child_nodes(node))


def _may_be_left(loop: Loop, end: Optional[ast.stmt] = None) -> bool:
    """Whether the program can leave a loop in its middle, by what is written in it. `end` does not count."""
    queue: List[Tuple[ast.AST, bool]] = [(node, True) for node in loop.body if node is not end]
    while queue:
        node, its_own = queue.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and its_own):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        inner = its_own and not isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        queue.extend((child, inner) for child in ast.iter_child_nodes(node))
    return False


def _takes_a_part(loop: For) -> bool:
    """Whether a loop over batches may take fewer than there are. Raises `NotTold` if it may take more."""
    called = {_last_name(node.func) for node in ast.walk(loop.iter) if isinstance(node, ast.Call)}
    if "cycle" in called:
        raise NotTold
    return not called <= {"enumerate", "iter", *_PROGRESS}


# -- how often a loop turns --------------------------------------------------------------------------------------------


def _turns(loop: For, frame: FrameType) -> _Turns:
    """Raises `NotTold` if the loop runs over nothing of a known length, or changes what that rests on."""
    over, index = _range(loop.iter, loop.target, frame)
    named = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)) and node.id in named:
                raise NotTold
    if index is None:
        return _Turns(len(over), None)
    value = known_names(frame, index).get(index)
    return _Turns(len(over), over.index(value) if type(value) is int and value in over else None)


class _Limit(NamedTuple):
    """What ends a `while`: the variable that counts its turns, and the value that it does not get beyond."""

    name: str
    value: ast.expr
    included: bool
    """Whether there is a turn with this value."""
    end: Optional[ast.stmt]
    """The statement in its body that ends it; None where its head does."""


def _limit(loop: ast.While) -> _Limit:
    """`while step < 1000`, or `while True` with `if step >= 1000: break` in its body."""
    found = _compared(loop.test, ends=False)
    if found is not None:
        return _Limit(*found, None)
    if isinstance(loop.test, ast.Constant) and loop.test.value:
        for node in loop.body:
            if isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Break, ast.Return)) and not node.orelse:
                found = _compared(node.test, ends=True)
                if found is not None:
                    return _Limit(*found, node)
    raise NotTold


def _compared(test: ast.expr, *, ends: bool) -> Optional[Tuple[str, ast.expr, bool]]:
    """The variable, the limit and whether a turn has it; None where the test is another one. `ends`: the test ends the
    loop, rather than letting it go on."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return None
    included = {ast.GtE: False, ast.Gt: True, ast.Eq: False} if ends else {ast.Lt: False, ast.LtE: True}
    kind = type(test.ops[0])
    return (test.left.id, test.comparators[0], included[kind]) if kind in included else None


def _turns_until(limit: _Limit, loop: ast.While, frame: FrameType) -> _Turns:
    """Raises `NotTold` unless the variable counts turns one by one, and the limit stays."""
    named = {node.id for node in ast.walk(limit.value) if isinstance(node, ast.Name)}
    counts = 0
    for node in (node for statement in loop.body for node in ast.walk(statement)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == limit.name:
            by_one = isinstance(node.op, ast.Add) and isinstance(node.value, ast.Constant) and node.value.value == 1
            if not by_one or node not in loop.body:
                raise NotTold
            counts += 1
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in named:
            raise NotTold
    stored = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == limit.name]
    if counts != 1 or sum(not isinstance(node.ctx, ast.Load) for node in stored) != 1:
        raise NotTold
    value, most = whole(value_of(ast.Name(limit.name, ast.Load()), frame)), whole(value_of(limit.value, frame))
    # What begins at 1 and is included turns as often as what begins at 0 and is not.
    if limit.included and limit.end is None:
        return _Turns(most, value - 1, counted=True)
    return _Turns(most + limit.included, value, counted=True)


def _range(node: ast.expr, target: ast.expr, frame: FrameType) -> Tuple[range, Optional[str]]:
    """What a loop runs over, as a range, and the variable that holds where it is in that, if there is one."""
    if isinstance(node, ast.Call) and not any(isinstance(each, ast.Starred) for each in node.args) and node.args:
        called = _last_name(node.func)
        if called in ("range", "trange"):
            values = [whole(value_of(each, frame)) for each in node.args]
            try:
                return range(*values), _name(target)
            except (TypeError, ValueError):
                raise NotTold from None
        if called == "enumerate" and len(node.args) == 1 and not node.keywords:
            pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else [None]
            over, _ = _range(node.args[0], target, frame)
            return range(len(over)), _name(pair[0])
        if called in _PROGRESS:
            return _range(node.args[0], target, frame)
    value = value_of(node, frame)
    if type(value) is range:
        return value, _name(target)
    if type(value) in SIZED:
        return range(len(value)), None
    raise NotTold


def _name(target: Optional[ast.expr]) -> Optional[str]:
    return target.id if isinstance(target, ast.Name) else None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
