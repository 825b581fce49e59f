"""`attention_weights`: attention weights that `nn.MultiheadAttention` returns by default; False has it return None in
their place. The effect is checked by the number of calls that were left without.

Weights are left out only where the user's source shows that nothing reads them, and of no other call: each call is
known by the line that makes it.
"""

from __future__ import annotations

import ast
import functools
import os
from types import FrameType
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.source_trees import SourceTrees
from ..process.unused_results import HeldCall, held_calls
from . import GuestContext, Knob, Refused
from ._modules import is_compiled

NAME = "attention_weights"
ARGUMENT = "need_weights"
POSITION = 4
"""Where the argument stands behind the module itself."""
_CALLED = torch.nn.MultiheadAttention
_MODULE_FILE = torch.nn.Module.__call__.__code__.co_filename
"""The file whose functions stand between a call of a module and its `forward`."""

Line = Tuple[str, int]
"""A file, as its code names it, and a line."""


class AttentionWeights(Knob):
    name = NAME

    def __init__(self) -> None:
        self._left_out = 0
        self._put: Optional[Tuple[Any, Any]] = None

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        modules = [module for root in steps.roots for module in root.modules()]
        if not any(isinstance(each, _CALLED) for each in modules) or any(map(is_compiled, modules)):
            return None  # What is compiled calls nothing that could be replaced.
        calls = list(_calls(modules))
        # A call is known by its line, so no other one may stand on it.
        others = _lines(each for each in calls if each.second_used or not _asks(each.node))
        unread = [each for each in calls if not others & _lines([each])]
        steps.noted[NAME] = _lines(unread)
        if unread:
            places = {(each.name, os.path.abspath(each.file), each.node.lineno) for each in unread}
            return {"obstacle": "", "calls": sorted(places)}
        if not calls:
            return {"obstacle": "no call of `nn.MultiheadAttention` was found in the program's own classes"}
        if all(_asks(each.node) is False for each in calls):
            return {"obstacle": "already on: the calls of `nn.MultiheadAttention` ask for no weights"}
        return {"obstacle": "the program reads the attention weights, or may read them"}

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            return
        lines: Set[Line] = context.steps.noted.get(NAME) or set()
        if not lines:
            raise Refused("no call was seen whose attention weights nothing reads")
        original = _CALLED.forward

        @functools.wraps(original)
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_on(args, kwargs) and _caller(get_frame(1)) in lines:
                self._left_out += 1
                if len(args) > POSITION:
                    args = (*args[:POSITION], False, *args[POSITION + 1 :])
                else:
                    kwargs = {**kwargs, ARGUMENT: False}
            return original(module, *args, **kwargs)

        self._put = (original, forward)
        _CALLED.forward = forward  # type: ignore[method-assign, assignment]

    def revert(self, context: GuestContext) -> None:
        put, self._put = self._put, None
        if put is not None and _CALLED.forward is put[1]:
            _CALLED.forward = put[0]  # type: ignore[method-assign]

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return None if value else self._left_out > 0


KNOB = AttentionWeights


def _calls(modules: List[Any]) -> Iterator[HeldCall]:
    """Calls of attention layers by the modules that hold them, in the user's code, once each."""
    trees = SourceTrees()
    held: Dict[type, Tuple[Set[str], Set[str]]] = {}
    watched: Set[Tuple[type, str]] = set()
    others: Set[Tuple[type, str]] = set()
    for owner in modules:
        for name, child in owner._modules.items():
            several = isinstance(child, (torch.nn.ModuleList, torch.nn.ModuleDict))
            layers = list(child._modules.values()) if several else [child]
            # What derives from it and does something of its own asks for weights by itself.
            if layers and all(isinstance(each, _CALLED) and type(each).forward is _CALLED.forward for each in layers):
                held.setdefault(type(owner), (set(), set()))[several].add(name)
                if any(each._forward_hooks for each in layers):
                    watched.add((type(owner), name))
            else:
                others.add((type(owner), name))
    seen: Set[Tuple[str, int, int]] = set()
    for kind, (names, lists) in held.items():
        for call in held_calls(trees, kind, names, lists):
            place = (call.file, call.node.lineno, call.node.col_offset)
            # Another object of the class may hold another kind of layer under the same name.
            if place not in seen and (kind, call.attribute) not in others:
                seen.add(place)
                # A hook gets all that the layer returns.
                yield call._replace(second_used=True) if (kind, call.attribute) in watched else call


def _lines(calls: Iterable[HeldCall]) -> Set[Line]:
    return {(each.file, line) for each in calls for line in each.lines}


def _asks(call: ast.Call) -> Optional[bool]:
    """Whether a call asks for weights, as written; None where that can't be read."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    given = {each.arg: each.value for each in call.keywords}
    value = call.args[POSITION] if len(call.args) > POSITION else given.get(ARGUMENT, ast.Constant(True))
    return value.value if isinstance(value, ast.Constant) and type(value.value) is bool else None


def _is_on(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    return bool(args[POSITION] if len(args) > POSITION else kwargs.get(ARGUMENT, True))


def _caller(frame: Optional[FrameType]) -> Optional[Line]:
    """The line that calls the module whose `forward` was called from this frame."""
    while frame is not None and frame.f_code.co_filename == _MODULE_FILE:
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
