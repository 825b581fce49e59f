"""Which names the methods of a class use: attributes that are loaded or called, and globals. They are read from
bytecode; nothing is run. And the attributes that an object holds."""

from __future__ import annotations

import dis
import sys
import types
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

_MOST_FUNCTIONS = 60
"""At most this many methods are searched for one class, including those that methods call."""
_METHOD_BIT = sys.version_info >= (3, 12)
"""From this version of Python on, one instruction loads attributes and methods, and its lowest bit says which."""


class Uses(NamedTuple):
    """Names of attributes, of any object: all that are loaded, and those that are called at once."""

    loaded: FrozenSet[str]
    called: FrozenSet[str]


def uses_of(kind: type, starts: Iterable[str]) -> Uses:
    """What the methods `starts` of a class use, and the methods and properties of the class that these use."""
    loaded: Set[str] = set()
    called: Set[str] = set()
    waiting = list(starts)
    looked: Set[str] = set()
    left = _MOST_FUNCTIONS
    while waiting and left > 0:
        name = waiting.pop(0)
        if name in looked:
            continue
        looked.add(name)
        for base in kind.__mro__:
            for function in functions_in(vars(base).get(name)):
                left -= 1
                found = _used_in(function.__code__)
                waiting += sorted(found.loaded - looked)
                loaded |= found.loaded
                called |= found.called
    return Uses(frozenset(loaded), frozenset(called))


def own_attributes(each: Any) -> Optional[Dict[str, Any]]:
    """The attributes that an object holds itself, by name; None if they can't be read. No code of its class runs."""
    try:
        held = object.__getattribute__(each, "__dict__")
    except Exception:  # It has none, or makes one up.
        return None
    return held if type(held) is dict else None


def functions_in(attribute: Any) -> List[types.FunctionType]:
    """The functions behind what a class holds under a name: a method, a property, one of a class, a wrapped one."""
    if isinstance(attribute, (staticmethod, classmethod)):
        attribute = attribute.__func__
    if isinstance(attribute, property):
        attribute = attribute.fget
    found: List[types.FunctionType] = []
    for _ in range(4):
        if isinstance(attribute, types.FunctionType):
            found.append(attribute)
        try:
            attribute = object.__getattribute__(attribute, "__dict__").get("__wrapped__")
        except Exception:  # It holds nothing of the kind.
            break
    return found


def functions_of(kind: type) -> Iterator[types.FunctionType]:
    """The functions behind all that a class and its bases hold."""
    for base in kind.__mro__:
        for attribute in list(vars(base).values()):
            yield from functions_in(attribute)


def globals_of(function: types.FunctionType) -> List[Any]:
    """The values in a function's closure, and the globals that it names."""
    names = function.__globals__
    used = [names[name] for name in _globals_in(function.__code__) if name in names]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # Not filled yet.
            continue
    return used


_known: Dict[types.CodeType, Tuple[Uses, List[str]]] = {}


def _used_in(code: types.CodeType) -> Uses:
    return _looked_through(code)[0]


def _globals_in(code: types.CodeType) -> List[str]:
    return _looked_through(code)[1]


def _looked_through(code: types.CodeType) -> Tuple[Uses, List[str]]:
    if code not in _known:
        loaded: Set[str] = set()
        called: Set[str] = set()
        names: List[str] = []
        for each in with_inner(code):
            own: Set[str] = set()
            unpacks = False
            for step in dis.get_instructions(each):
                kind = step.opname
                if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                    names.append(step.argval)
                elif kind in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"):
                    own.add(step.argval)
                    if kind == "LOAD_METHOD" or (_METHOD_BIT and (step.arg or 0) & 1):
                        called.add(step.argval)
                elif kind in ("CALL_FUNCTION_EX", "CALL_FUNCTION_KW"):
                    # What is called with `*args` (before 3.11: with keywords) is loaded like any attribute.
                    unpacks = True
            loaded |= own
            if unpacks:
                called |= own
        _known[code] = (Uses(frozenset(loaded), frozenset(called)), list(dict.fromkeys(names)))
    return _known[code]


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of the comprehensions and functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)
