"""What an expression of the user's is worth now, where that can be told without running any code of the user's.

A frame and a part of its source go in. Names are looked up in the frame, attributes in the dictionaries of objects and
classes, so no property is asked and no method called.
"""

from __future__ import annotations

import ast
import dis
from types import CodeType, FrameType
from typing import Any, Dict, Optional

import torch

_FUNCTION = 0x1
"""CO_OPTIMIZED, from inspect: set for functions, and not for classes and modules, whose locals are no copy."""
_READ_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))
SIZED = (list, tuple, dict, str, range)
"""Types whose length is told. Subclasses may have one of their own making."""


class NotTold(Exception):
    """What is not certain, or what only a call of the user's code would tell."""


def known_names(frame: FrameType, *names: str) -> Dict[str, Any]:
    """Those of the names that a frame has as locals, with their values.

    Up to Python 3.12, reading a function's locals from outside leaves a copy of all of them in its frame. As long as
    the function ran, that copy would keep alive what the function lets go, such as the tensors of a step. So it is
    emptied. A function that calls `locals()` may have that very copy in use: of its names nothing is told.
    """
    code = frame.f_code
    if not code.co_flags & _FUNCTION:
        return {name: frame.f_locals[name] for name in names if name in frame.f_locals}
    if _reads_locals(code):
        raise NotTold
    copied = frame.f_locals
    found = {name: copied[name] for name in names if name in copied}
    if type(copied) is dict:
        copied.clear()
    return found


def _reads_locals(code: CodeType) -> bool:
    """Whether a function calls what reads its locals. `model.eval()` is no such call, but `eval` is among its names."""
    if not _READ_LOCALS.intersection(code.co_names):
        return False
    read = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return bool(_READ_LOCALS & read)


def whole(value: Any) -> int:
    """`value` if it is a whole number. Raises `NotTold` otherwise."""
    if type(value) is not int:
        raise NotTold
    return value


def value_of(node: ast.expr, frame: FrameType) -> Any:
    """The value that an expression has now. Raises `NotTold` if a call of the user's code could be needed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (known_names(frame, node.id), frame.f_globals):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        return _attribute(value_of(node.value, frame), node.attr)
    elif isinstance(node, ast.Subscript):
        held, key = value_of(node.value, frame), value_of(node.slice, frame)
        if _is_config(held):
            return _attribute(held, key)
        if type(held) in (dict, list, tuple) and type(key) in (str, int):
            try:
                return held[key]
            except (KeyError, IndexError):
                raise NotTold from None
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -whole(value_of(node.operand, frame))
    elif isinstance(node, ast.BinOp):
        return _sum(node, whole(value_of(node.left, frame)), whole(value_of(node.right, frame)))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        held = value_of(node.func.value, frame)
        if type(held) is torch.Tensor and len(node.args) == 1 and not node.keywords:
            return _size(held, value_of(node.args[0], frame))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
        given = value_of(node.args[0], frame)
        if node.func.id == "len" and type(given) in (*SIZED, torch.Tensor):
            return _size(given, 0) if type(given) is torch.Tensor else len(given)
        if node.func.id == "int" and type(given) in (int, float, str):
            try:
                return int(given)
            except (ValueError, OverflowError):
                raise NotTold from None
    raise NotTold


def _size(tensor: torch.Tensor, dimension: Any) -> int:
    if type(dimension) is not int or not -tensor.dim() <= dimension < tensor.dim():
        raise NotTold
    return tensor.shape[dimension]


def _sum(node: ast.BinOp, left: int, right: int) -> int:
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv) and right:
        return left // right
    raise NotTold


def _is_config(value: Any) -> bool:
    return (type(value).__module__, type(value).__name__) == ("omegaconf.dictconfig", "DictConfig")


def own_attributes(value: Any) -> Optional[Dict[str, Any]]:
    """An object's own dictionary, whatever its class makes of the question; None where it has none."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _attribute(value: Any, name: str) -> Any:
    """An attribute that lies in the object's own dictionary, or plainly in its class."""
    own = own_attributes(value)
    if _is_config(value) and own is not None:
        # omegaconf keeps a node for each value. Where that refers to another one, it holds the words of the reference.
        nodes = own.get("_content")
        node = nodes.get(name) if isinstance(nodes, dict) else None
        return node if _is_config(node) else _attribute(node, "_val")
    if own is not None and name in own:
        return own[name]
    for kind in type(value).__mro__:
        if name in vars(kind):
            found = vars(kind)[name]
            if type(found) in (int, float, str, list, tuple, dict, range):
                return found
            break
    raise NotTold
