"""How long a program will go on training, by what it says itself: the ranges that the loops around the step run over.

Frames of a running program go in. Nothing is called: values are read from frames, and from the dictionaries of objects,
so that no property of the user's runs. What can't be told for certain is not told.
"""

from __future__ import annotations

import ast
import linecache
import os
from types import FrameType
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..process.user_code import OWN_FOLDER, is_users_file
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
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_SIZED = (list, tuple, dict, str, range)
_ENOUGH = 3
"""Turns of a loop after which it is known how many steps each of them takes."""

For = Union[ast.For, ast.AsyncFor]


class Extent(NamedTuple):
    """`epochs`, or `steps` (batches; steps in a loop without a loader) of the whole run; None is unknown.

    `may_end_sooner`: the program can leave one of these loops before its end.
    """

    epochs: Optional[int] = None
    steps: Optional[int] = None
    may_end_sooner: bool = False


UNKNOWN = Extent()


class _NotTold(Exception):
    """What is not certain, or what only a call of the user's code would tell."""


class _Turns(NamedTuple):
    """A loop over a range: how often it turns, and how often it has turned (None where that can't be read)."""

    times: int
    done: Optional[int]


def extent_of(frame: Optional[FrameType], taken: int) -> Extent:
    """What the callers of `frame` say. `taken`: batches (or steps) that the loop took before this one.

    Where the user's line that asks for the batch is the head of a loop over the loader, loops around it count epochs.
    Elsewhere they count steps, if so far each turn was found to take the same number of them.
    """
    trained = of_trainer(frame)
    if trained is not None:
        return Extent(*trained)
    around: List[_Turns] = []
    over_loader = may_end = inside = False
    try:
        for each in _users(frame):
            for loop, in_head in _loops_around(each):
                may_end = may_end or _may_be_left(loop)
                if in_head:
                    # A loop over batches: over the loader, or over what hands its batches on.
                    over_loader = over_loader or not inside
                    may_end = may_end or _takes_a_part(loop)
                else:
                    around.append(_turns(loop, each))
                inside = True
    except _NotTold:
        return UNKNOWN
    if over_loader:
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
    """The user's frames, innermost first. Raises `_NotTold` where another library may turn a loop around them."""
    others = False
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_file(name):
            if others:
                raise _NotTold
            yield frame
        others = others or _may_loop(name)
        frame = frame.f_back


def _may_loop(name: str) -> bool:
    if name.startswith(OWN_FOLDER):
        return False
    for mark in _PACKAGES:
        _, found, inside = name.rpartition(mark)
        if found:
            return not any(inside == each or inside.startswith((each + os.sep, each + ".py")) for each in _HANDS_ON)
    return False


# -- which loops stand around a line -----------------------------------------------------------------------------------


def _loops_around(frame: FrameType) -> List[Tuple[For, bool]]:
    """The `for` loops around the line that runs in this frame, innermost first, and whether that line is their head.

    Raises `_NotTold` where there is no source, and for comprehensions, loops on one line, and lines in a `while`.
    """
    if frame.f_code.co_name == "<lambda>":
        return []  # No statement fits into one.
    try:
        lines = linecache.getlines(os.path.abspath(frame.f_code.co_filename), frame.f_globals)
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        raise _NotTold from None
    line = frame.f_lineno
    if not 1 <= line <= len(lines):
        raise _NotTold
    loops: List[Tuple[For, bool]] = []
    for node in _own_nodes(_scope(tree, frame)):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.lineno <= line <= (node.end_lineno or 0):
            if isinstance(node, ast.While):
                raise _NotTold
            head_ends = node.iter.end_lineno or node.iter.lineno
            if node.body[0].lineno <= head_ends:
                raise _NotTold
            if node.orelse and line >= node.orelse[0].lineno:
                continue  # After the loop.
            loops.append((node, line <= head_ends))
    return sorted(loops, key=lambda entry: -entry[0].lineno)


def _scope(tree: ast.Module, frame: FrameType) -> Any:
    """The module, or the function whose code runs in this frame. Raises `_NotTold` where it is not found."""
    if frame.f_code.co_name == "<module>":
        return tree
    first = frame.f_code.co_firstlineno  # The line of the first decorator, if there is one.
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == frame.f_code.co_name:
            begins = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begins == first:
                return node
    raise _NotTold


def _own_nodes(scope: Any) -> Iterator[ast.AST]:
    """The nodes of a scope without those of functions and classes inside it."""
    queue: List[ast.AST] = list(scope.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            queue.extend(ast.iter_child_nodes(node))


def _may_be_left(loop: For) -> bool:
    """Whether the program can leave a loop in its middle, by what is written in it."""
    queue: List[Tuple[ast.AST, bool]] = [(node, True) for node in loop.body]
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
    """Whether a loop over batches may take fewer than there are. Raises `_NotTold` if it may take more."""
    called = {_last_name(node.func) for node in ast.walk(loop.iter) if isinstance(node, ast.Call)}
    if "cycle" in called:
        raise _NotTold
    return not called <= {"enumerate", "iter", *_PROGRESS}


# -- how often a loop turns --------------------------------------------------------------------------------------------


def _turns(loop: For, frame: FrameType) -> _Turns:
    """Raises `_NotTold` if the loop runs over nothing of a known length, or changes what that rests on."""
    over, index = _range(loop.iter, loop.target, frame)
    named = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)) and node.id in named:
                raise _NotTold
    if index is None:
        return _Turns(len(over), None)
    value = frame.f_locals.get(index)
    return _Turns(len(over), over.index(value) if type(value) is int and value in over else None)


def _range(node: ast.expr, target: ast.expr, frame: FrameType) -> Tuple[range, Optional[str]]:
    """What a loop runs over, as a range, and the variable that holds where it is in that, if there is one."""
    if isinstance(node, ast.Call) and not any(isinstance(each, ast.Starred) for each in node.args) and node.args:
        called = _last_name(node.func)
        if called in ("range", "trange"):
            values = [_whole(_value(each, frame)) for each in node.args]
            try:
                return range(*values), _name(target)
            except (TypeError, ValueError):
                raise _NotTold from None
        if called == "enumerate" and len(node.args) == 1 and not node.keywords:
            pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else [None]
            over, _ = _range(node.args[0], target, frame)
            return range(len(over)), _name(pair[0])
        if called in _PROGRESS:
            return _range(node.args[0], target, frame)
    value = _value(node, frame)
    if type(value) is range:
        return value, _name(target)
    if type(value) in _SIZED:
        return range(len(value)), None
    raise _NotTold


def _name(target: Optional[ast.expr]) -> Optional[str]:
    return target.id if isinstance(target, ast.Name) else None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise _NotTold
    return value


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The value that an expression has now. Raises `_NotTold` if a call of the user's code could be needed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, frame), node.attr)
    elif isinstance(node, ast.Subscript):
        held, key = _value(node.value, frame), _value(node.slice, frame)
        if type(held) in (dict, list, tuple) and type(key) in (str, int):
            try:
                return held[key]
            except (KeyError, IndexError):
                raise _NotTold from None
    elif isinstance(node, ast.BinOp):
        return _sum(node, _whole(_value(node.left, frame)), _whole(_value(node.right, frame)))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
        given = _value(node.args[0], frame)
        if node.func.id == "len" and type(given) in _SIZED:
            return len(given)
        if node.func.id == "int" and type(given) in (int, float, str):
            try:
                return int(given)
            except (ValueError, OverflowError):
                raise _NotTold from None
    raise _NotTold


def _sum(node: ast.BinOp, left: int, right: int) -> int:
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv) and right:
        return left // right
    raise _NotTold


def _attribute(value: Any, name: str) -> Any:
    """An attribute that lies in the object's own dictionary, or plainly in its class."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    if isinstance(own, dict) and name in own:
        return own[name]
    for kind in type(value).__mro__:
        if name in vars(kind):
            found = vars(kind)[name]
            if type(found) in (int, float, str, list, tuple, dict, range):
                return found
            break
    raise _NotTold
