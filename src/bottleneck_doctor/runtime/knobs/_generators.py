"""Random generators that a sample may be drawn from: the global ones, and those that a dataset, its transforms or its
functions hold as their own, like those of albumentations and MONAI, or a script's `numpy.random.default_rng(seed)`."""

from __future__ import annotations

import functools
import random
import sys
import types
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, Set, Tuple

import torch

from ..process.user_code import is_users_file
from ..process.uses import functions_of, globals_of, own_attributes
from ._samples import alike

_MOST_OBJECTS = 2000
_DEEPEST = 8
_LONGEST = 64
"""Limits of the search. A longer list, or a larger dictionary, holds data and is not looked into."""
_LEAVES = (str, bytes, bytearray, int, float, complex, type(None), type, types.ModuleType, torch.Tensor)


class Generators:
    """The global random generators, and those within `roots`, as they stand."""

    def __init__(self, *roots: Any) -> None:
        self._roots = roots
        self._global = _global_states()
        self._own = {id(each): (each, _state_of(each)) for each in _within(roots)}

    def drew(self) -> bool:
        """Whether one of them has moved, or was made meanwhile."""
        own = {id(each): _state_of(each) for each in _within(self._roots)}
        before = {key: state for key, (_, state) in self._own.items()}
        return not alike((self._global, before), (_global_states(), own))

    def put_back(self) -> None:
        """Those that were made meanwhile stay as they are."""
        own, of_torch, of_numpy = self._global
        random.setstate(own)
        torch.set_rng_state(of_torch)
        if of_numpy is not None:
            sys.modules["numpy.random"].set_state(of_numpy)
        for each, state in self._own.values():
            _put_back(each, state)


def _global_states() -> Tuple[Any, Any, Any]:
    numpy = sys.modules.get("numpy.random")
    return random.getstate(), torch.get_rng_state(), None if numpy is None else numpy.get_state(legacy=False)


# -- one generator -----------------------------------------------------------------------------------------------------


def _is_generator(value: Any) -> bool:
    if isinstance(value, torch.Generator):
        return value.device.type == "cpu"
    if isinstance(value, random.Random):
        return not isinstance(value, random.SystemRandom)  # It has no state.
    numpy = sys.modules.get("numpy.random")
    return numpy is not None and isinstance(value, (numpy.Generator, numpy.RandomState))


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    return generator.get_state(legacy=False)


def _put_back(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


# -- where they are ----------------------------------------------------------------------------------------------------


def _within(roots: Tuple[Any, ...]) -> List[Any]:
    """The generators that can be reached, by breadth, through attributes, and through what functions name."""
    waiting: Deque[Tuple[Any, int]] = deque((root, 0) for root in roots)
    seen: Dict[int, Any] = {}
    kinds: Set[type] = set()
    found: List[Any] = []
    while waiting and len(seen) < _MOST_OBJECTS:
        each, depth = waiting.popleft()
        kind = type(each)
        if issubclass(kind, _LEAVES) or id(each) in seen:
            continue
        seen[id(each)] = each
        if _is_generator(each):
            found.append(each)
        elif depth < _DEEPEST:
            held = [*_held_by(each), *(() if kind in kinds else _held_by_class(kind))]
            kinds.add(kind)
            waiting.extend((value, depth + 1) for value in held)
    return found


def _held_by(each: Any) -> Iterable[Any]:
    kind = type(each)
    if issubclass(kind, (list, tuple, dict)):
        few = len(each) <= _LONGEST
        return list(dict.values(each) if issubclass(kind, dict) else each) if few else ()
    if kind is types.FunctionType:
        return [*_named_by(each), *(each.__defaults__ or ())]
    if kind is types.MethodType:
        return each.__self__, each.__func__
    if kind is types.BuiltinFunctionType:
        return (each.__self__,)
    if issubclass(kind, functools.partial):
        return each.func, *each.args, *each.keywords.values()
    return (own_attributes(each) or {}).values()


def _held_by_class(kind: type) -> List[Any]:
    """What the methods of a class name, and the generators that it has as attributes."""
    attributes = [each for base in kind.__mro__ for each in vars(base).values()]
    named = (each for method in functions_of(kind) for each in _named_by(method))
    return [*filter(_is_generator, attributes), *named]


def _named_by(function: types.FunctionType) -> List[Any]:
    """The globals that a function of the user's names, and the values of its closure. A library's name too much."""
    return globals_of(function) if is_users_file(function.__code__.co_filename) else []
