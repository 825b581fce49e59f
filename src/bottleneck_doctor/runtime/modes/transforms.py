"""What each element of a chain of transforms costs: the elements are replaced by proxies that take the time.

A chain is any object reachable from the dataset whose class is called Compose, or that is callable and keeps a list
under `transforms`, as those of torchvision and albumentations do. The chain is changed in place, for a window only.
"""

from __future__ import annotations

import copy
import functools
import types
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

import torch

from ..originals import now
from .sites import as_json, class_site, function_site

_MOST_OBJECTS = 2000
_DEPTH = 4
_ELEMENTS = 8
"""How far to look: objects in all, attributes deep, elements of one list."""
_FETCHERS = ("__getitems__", "__getitem__", "__iter__")
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, torch.Tensor)


class TimedElement:
    """Stands for an element of a chain in all but its type, and adds up what calling it takes."""

    __slots__ = ("_doctor_element", "_doctor_seconds")

    def __init__(self, element: Any) -> None:
        object.__setattr__(self, "_doctor_element", element)
        object.__setattr__(self, "_doctor_seconds", 0.0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        begun = now()
        made = self._doctor_element(*args, **kwargs)
        object.__setattr__(self, "_doctor_seconds", self._doctor_seconds + now() - begun)
        return made

    @property  # type: ignore[misc]  # isinstance() asks for it, and shall see the element's class
    def __class__(self) -> Any:
        return self._doctor_element.__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_doctor_element"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._doctor_element, name, value)

    def __repr__(self) -> str:
        return repr(self._doctor_element)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A copy, or what a spawned worker gets, is the element alone.
        return copy.copy, (self._doctor_element,)


class Chains:
    """The chains of a dataset. Put proxies in with `time`, take them out with `revert`."""

    def __init__(self) -> None:
        self._elements: List[TimedElement] = []
        self._changed: List[Tuple[Any, bool, Any]] = []

    def time(self, *roots: Any) -> None:
        """Replace the elements of every chain that can be reached from `roots`."""
        for chain in find_chains(roots):
            own = "transforms" in chain.__dict__
            before = chain.transforms
            timed = [TimedElement(element) for element in before]
            # In the instance itself, also where a module keeps its list among its children: that one stays as it is.
            chain.__dict__["transforms"] = tuple(timed) if isinstance(before, tuple) else timed
            self._changed.append((chain, own, before))
            self._elements += timed

    def revert(self) -> None:
        while self._changed:
            chain, own, before = self._changed.pop()
            if own:
                chain.__dict__["transforms"] = before
            else:
                chain.__dict__.pop("transforms", None)

    def seconds(self) -> List[float]:
        """Seconds that each element took so far in this process, in the order of `described`."""
        return [element._doctor_seconds for element in self._elements]

    def described(self) -> List[Dict[str, Any]]:
        """Name of each element, and where it begins if it is the user's own."""
        return [_described(timed._doctor_element) for timed in self._elements]


def find_chains(roots: Tuple[Any, ...]) -> List[Any]:
    """Chains within a few attributes of `roots`; one inside another counts as its element."""
    found: List[Any] = []
    seen: Set[int] = set()
    waiting: Deque[Tuple[Any, int]] = deque((root, 0) for root in roots)
    while waiting and len(seen) < _MOST_OBJECTS:
        each, depth = waiting.popleft()
        if isinstance(each, _LEAVES) or id(each) in seen:
            continue
        seen.add(id(each))
        if _is_chain(each):
            found.append(each)
        elif depth < _DEPTH:
            deeper = depth + (not isinstance(each, (list, tuple, dict)))
            waiting.extend((inner, deeper) for inner in _inside(each))
    return found


def _is_chain(candidate: Any) -> bool:
    attributes = getattr(candidate, "__dict__", None)
    if not isinstance(attributes, dict) or not callable(candidate):
        return False
    elements = attributes.get("transforms")
    if elements is None and isinstance(candidate, torch.nn.Module):
        elements = candidate._modules.get("transforms")
    if not isinstance(elements, (list, tuple, torch.nn.ModuleList)) or not len(elements):
        return False
    return all(callable(element) for element in elements)


def _inside(each: Any) -> List[Any]:
    if isinstance(each, (list, tuple)):
        return list(each[:_ELEMENTS])
    if isinstance(each, dict):
        return [value for _, value in zip(range(4 * _ELEMENTS), each.values())]
    if isinstance(each, functools.partial):
        return [each.func, *each.args, *each.keywords.values()]
    inside: List[Any] = []
    if isinstance(each, types.MethodType):
        inside.append(each.__self__)
        each = each.__func__
    if isinstance(each, types.FunctionType):
        return inside + _used_by(each)
    attributes = getattr(each, "__dict__", None)
    if isinstance(attributes, dict):
        inside += attributes.values()
        for name in _FETCHERS:
            method = getattr(type(each), name, None)
            if isinstance(method, types.FunctionType):
                inside += _used_by(method)
    return inside


def _used_by(function: Any) -> List[Any]:
    """What a function closes over, and the globals that it names."""
    names = function.__globals__
    used = [names[name] for name in function.__code__.co_names if name in names]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # Not filled yet.
            continue
    return used


def _described(element: Any) -> Dict[str, Any]:
    inner: Optional[Any] = getattr(element, "lambd", None)
    function = inner if callable(inner) else element
    name = getattr(function, "__name__", None) or type(function).__name__
    if function is inner:
        name = f"{type(element).__name__}({name})"
    # Its method says more than its class: that is where its lines are.
    site = function_site(function) or class_site(type(function))
    return {"name": name, "site": as_json(site)}
