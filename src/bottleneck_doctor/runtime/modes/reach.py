"""Which transforms a dataset calls, found by inspection alone: nothing is called and nothing is changed.

Two kinds are looked for, under all wrappers. A *chain* is callable and keeps a list under `transforms`, as in
torchvision and albumentations; the elements of the list are transforms. A *lone* transform is a callable attribute (an
object, a function, a lambda or a partial) that is called by a method of the dataset or of one of the user's transforms.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections import deque
from itertools import islice
from typing import Any, Deque, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.utils.data import Dataset

from ..process.user_code import is_users_file
from ..process.uses import Uses, functions_in, globals_of, own_attributes, uses_of
from .sites import function_site, plain_function
from .timed import unwrapped

_MOST_OBJECTS = 2000
_DEPTH = 5
_ELEMENTS = 8
"""Limits of the search: objects in all, depth in attributes (not counting datasets in datasets), elements of a list."""
_DATASETS = 64
"""Datasets of one list that are looked into."""
_MOST_HELD = 32
"""Transforms of one list or dictionary; a longer one holds data."""
_FETCHERS = ("__getitems__", "__getitem__", "__iter__", "__next__")
_CALLERS = ("__call__", "forward", "transform", "_transform")
_LEAVES = (str, bytes, bytearray, int, float, complex, type(None), type, types.ModuleType, torch.Tensor)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, functools.partial)
_NAMED = re.compile(r"transform|augment|(^|_)aug|preproc|tfms?($|_)|(^|_)tf($|_)|to_tensor|normali[sz]|crop|flip", re.I)
"""Attributes whose name says that they hold a transform, whatever it is called with."""
_OTHERS = re.compile(
    r"load|read|open|decod|fetch|token|collat|model|sampler|client|request|query|cache|hook|metric|logg|lock|callback|rng",
    re.I,
)
"""Attributes that hold a callable that is no transform."""
ABSENT: Any = object()


class Group(NamedTuple):
    """Transforms that belong together: the elements of a chain in their order, or a lone one."""

    elements: List[Any]
    lone: bool
    holder: Any
    """The object that has the chain or the lone transform as an attribute."""


class Spot(NamedTuple):
    """Where transforms are held: at `key` of a list, a dictionary, or an object's dictionary. `kind`: None if one
    transform is held there itself, else the type of the container. `sure`: they are transforms whatever their input."""

    held: Any
    key: Any
    elements: List[Any]
    kind: Any
    sure: bool


class Found(NamedTuple):
    """Transforms, where they are held, lone ones that hold others (by id), and the datasets, outermost first."""

    groups: List[Group]
    spots: List[Spot]
    holders: Dict[int, bool]
    datasets: List[Any]


class _Visit(NamedTuple):
    each: Any
    depth: int
    names: FrozenSet[str]
    """Methods of it that its holder calls."""
    within: Any
    """The innermost lone transform that holds it; None without one."""


def find(roots: Tuple[Any, ...]) -> Found:
    """All transforms within a few attributes of `roots`. A chain inside another counts as its element."""
    walk = _Walk()
    walk.run(roots)
    return walk.found()


class _Walk:
    def __init__(self) -> None:
        self._waiting: Deque[_Visit] = deque()
        self._seen: Dict[int, Any] = {}
        self._groups: List[Group] = []
        self._lone: Dict[int, Any] = {}
        self._spots: List[Tuple[Spot, Any]] = []
        self._held: Set[Tuple[int, Any]] = set()
        self._holders: Dict[int, bool] = {}
        self._datasets: List[Any] = []

    def run(self, roots: Tuple[Any, ...]) -> None:
        self._waiting.extend(_Visit(root, 0, frozenset(), None) for root in roots)
        while self._waiting and len(self._seen) < _MOST_OBJECTS:
            visit = self._waiting.popleft()
            visit = visit._replace(each=unwrapped(visit.each))
            if not issubclass(type(visit.each), _LEAVES) and id(visit.each) not in self._seen:
                self._seen[id(visit.each)] = visit.each
                self._look(visit)

    def found(self) -> Found:
        # A library's object that only calls what it holds, such as torchvision's StandardTransform, is no transform.
        bare = {key for key, own in self._holders.items() if not own}
        return Found(
            [each for each in self._groups if not (each.lone and id(each.elements[0]) in bare)],
            [spot for spot, lone in self._spots if lone is None or id(lone) not in bare],
            self._holders,
            self._datasets,
        )

    # -- one object --------------------------------------------------------------------------------------------------

    def _look(self, visit: _Visit) -> None:
        each, kind = visit.each, type(visit.each)
        if issubclass(kind, (list, tuple, dict)):
            self._push(visit, _held_in(each), visit.depth)
        elif chain_elements(each) is not None:
            self._note_chain(visit)
        elif issubclass(kind, functools.partial):
            self._push(visit, [each.func, *each.args, *each.keywords.values()], visit.depth + 1)
        elif kind is types.MethodType:
            self._push(visit, [each.__self__, *_globals_of_users(each.__func__)], visit.depth + 1)
        elif kind is types.FunctionType:
            self._push(visit, globals_of(each), visit.depth + 1)
        else:
            self._look_at_object(visit)

    def _look_at_object(self, visit: _Visit) -> None:
        each, kind = visit.each, type(visit.each)
        attributes = attributes_of(each)
        if attributes is None:
            return
        dataset = is_dataset(each)
        if dataset:
            self._datasets.append(each)
        uses = uses_of(kind, (*(_FETCHERS if dataset else _CALLERS), *sorted(visit.names)))
        if not _is_left_alone(each):
            for lone in self._lone_of(visit, attributes, uses, own=dataset or is_users_class(kind)):
                self._push(visit._replace(within=lone), [lone], visit.depth + 1, uses.called)
        self._push(visit, attributes.values(), visit.depth + (not dataset), uses.called)
        if dataset:
            for name in _FETCHERS:
                for function in functions_in(
                    next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), 0)
                ):
                    self._push(visit, _globals_of_users(function), visit.depth + 1)

    def _push(self, visit: _Visit, values: Iterable[Any], depth: int, names: FrozenSet[str] = frozenset()) -> None:
        if depth <= _DEPTH:
            self._waiting.extend(
                visit._replace(each=value, depth=depth, names=names or visit.names)
                for value in values
                if not issubclass(type(value), _LEAVES)
            )

    # -- what is noted -----------------------------------------------------------------------------------------------

    def _note_chain(self, visit: _Visit) -> None:
        chain = visit.each
        elements: Any = chain_elements(chain)
        inside = [unwrapped(element) for element in elements]
        self._note_all(visit, inside, elements, chain, "transforms", sure=True)

    def _note_all(self, visit: _Visit, inside: List[Any], held: Any, owner: Any, name: str, *, sure: bool) -> None:
        """Note the transforms of a list, which is attribute `name` of `owner`."""
        if self._is_known(held, None) or self._is_known(owner, name):
            return
        self._groups.append(Group(inside, lone=False, holder=owner))
        self._note_holder(visit.within)
        if type(held) is list:
            self._spots += [(Spot(held, place, [each], None, sure), None) for place, each in enumerate(inside)]
        else:
            # In the instance's dictionary, even if a module keeps its list among its children, which stays unchanged.
            kind = tuple if issubclass(type(held), tuple) else list
            self._spots.append((Spot(owner.__dict__, name, inside, kind, sure), None))

    def _note_lone(self, visit: _Visit, spot: Spot) -> Iterator[Any]:
        element = spot.elements[0]
        if self._is_known(spot.held, spot.key):
            return
        self._note_holder(visit.within)
        self._spots.append((spot, element))
        if id(element) not in self._lone:
            self._lone[id(element)] = element
            self._groups.append(Group([element], lone=True, holder=visit.each))
        yield element

    def _note_holder(self, within: Any) -> None:
        if within is not None:
            self._holders[id(within)] = _is_users(within)

    def _is_known(self, held: Any, key: Any) -> bool:
        known = (id(held), key) in self._held
        self._held.add((id(held), key))
        return known

    def _lone_of(self, visit: _Visit, attributes: Dict[str, Any], uses: Uses, *, own: bool) -> Iterator[Any]:
        """Note the lone transforms among the attributes of an object. `own`: the object is the user's, so any callable
        may be a transform; in a library's object, only callables with such names, or the user's own, may be."""
        owner = visit.each
        for name in sorted(uses.loaded - attributes.keys()):
            value = _of_class(type(owner), name)
            if value is not None and not hasattr(type(value), "__get__"):
                attributes = {**attributes, name: value}
        for name, value in attributes.items():
            sure = _NAMED.search(name) is not None
            if name not in uses.loaded or name == "lambd" or (not sure and _OTHERS.search(name)):
                continue
            value = unwrapped(value)
            if type(value) in (list, tuple):
                inside = [unwrapped(each) for each in value[: _MOST_HELD + 1]]
                if (
                    (sure or own)
                    and 0 < len(inside) <= _MOST_HELD
                    and all(is_transform(each, owner) for each in inside)
                ):
                    self._note_all(visit, inside, value, owner, name, sure=sure)
            elif type(value) is dict:
                for key, each in list(value.items())[:_MOST_HELD] if len(value) <= _MOST_HELD else ():
                    each = unwrapped(each)
                    if (sure or (type(key) is str and _NAMED.search(key))) and is_transform(each, owner):
                        yield from self._note_lone(visit, Spot(value, key, [each], None, True))
            elif (sure or (name in uses.called and (own or _is_users(value)))) and is_transform(value, owner):
                yield from self._note_lone(visit, Spot(owner.__dict__, name, [value], None, sure))


# -- what an object is -----------------------------------------------------------------------------------------------


def chain_elements(candidate: Any) -> Any:
    """The list of transforms that a chain holds; None if the object is no chain."""
    attributes = getattr(candidate, "__dict__", None)
    if not isinstance(attributes, dict) or not callable(candidate):
        return None
    elements = attributes.get("transforms")
    if elements is None and isinstance(candidate, torch.nn.Module):
        elements = candidate._modules.get("transforms")
    if not isinstance(elements, (list, tuple, torch.nn.ModuleList)) or not len(elements):
        return None
    return elements if all(callable(element) for element in elements) else None


def is_dataset(each: Any) -> bool:
    """Whether it is a dataset: one of torch's, or an object with methods to get samples that is not callable."""
    kind = type(each)
    if issubclass(kind, Dataset):
        return True
    if issubclass(kind, (*_LEAVES, torch.nn.Module, list, tuple, dict, set, frozenset)) or callable(each):
        return False
    return any(functions_in(vars(base).get(name)) for base in kind.__mro__ for name in _FETCHERS)


def is_transform(value: Any, owner: Any) -> bool:
    """Whether a callable that `owner` holds may be a transform: no class, no dataset and no model, no method of the
    owner, and nothing that a library's compiled code needs to be the real object."""
    kind = type(value)
    if chain_elements(plain_function(value)) is not None:
        return False
    if issubclass(kind, _FUNCTIONS):
        return True
    if kind is types.MethodType:
        return value.__self__ is not owner and not is_dataset(value.__self__)
    if issubclass(kind, (*_LEAVES, Dataset)):
        return False
    if issubclass(kind, torch.nn.Module):
        return not _has_parameters(value)
    return any(functions_in(vars(base).get("__call__")) for base in kind.__mro__)


def is_users_class(kind: type) -> bool:
    """Whether a class is defined in a file of the user's."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and is_users_file(file)


def attributes_of(each: Any) -> Optional[Dict[str, Any]]:
    """The attributes of an object by name, including a module's children; None if they can't be read."""
    held = own_attributes(each)
    if held is None or not issubclass(type(each), torch.nn.Module):
        return held
    return {**held.get("_modules", {}), **held}


def _is_users(value: Any) -> bool:
    return function_site(value) is not None or is_users_class(type(value))


def _is_left_alone(owner: Any) -> bool:
    """Whether nothing in it may be replaced: it is a model, or a frozen dataclass, which may be a dictionary key."""
    frozen = getattr(getattr(type(owner), "__dataclass_params__", None), "frozen", False)
    return bool(frozen) or (issubclass(type(owner), torch.nn.Module) and _has_parameters(owner))


def _has_parameters(module: Any) -> bool:
    return next(iter(module.parameters()), None) is not None


def _of_class(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _held_in(each: Any) -> List[Any]:
    if issubclass(type(each), dict):
        return list(islice(dict.values(each), 4 * _ELEMENTS))
    kind = list if issubclass(type(each), list) else tuple
    first = list(islice(kind.__iter__(each), _DATASETS))
    return [value for place, value in enumerate(first) if place < _ELEMENTS or is_dataset(value)]


def _globals_of_users(function: Any) -> List[Any]:
    code = getattr(function, "__code__", None)
    return globals_of(function) if code is not None and is_users_file(code.co_filename) else []
