"""What functions of libraries, and the classes of their objects, take by name: of those that lie between the line of
the user's and what a library does there."""

from __future__ import annotations

import inspect
import re
from types import CodeType, FrameType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..process.user_code import is_users_file
from .known_values import NotTold, known_names, own_attributes

Places = Dict[str, Optional[int]]
"""What is taken by name, and which positional arguments these are; None for one that is given by name only. Objects
whose methods take them are not counted."""
PLAIN = (bool, int, float, str, type(None))
"""What can be told over the wire, and written into a program."""


class Taken(NamedTuple):
    """What a class takes. `rests`: what its `__init__`, and those above that get them, call the arguments that they
    have no names for. `within`: the classes of these."""

    places: Places
    rests: List[str]
    within: List[type]


_taken: Dict[type, Taken] = {}


def library_frames(frame: Optional[FrameType]) -> List[FrameType]:
    """The frames of libraries that the user's line has led to, up to this one, from the outermost in; none where the
    user's own code is running."""
    within: List[FrameType] = []
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        within.append(frame)
        frame = frame.f_back
    return [] if frame is None else within[::-1]


def given_to(frame: FrameType) -> Dict[str, Any]:
    """A function's parameters and what they hold now; nothing where that can't be read."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return _held(frame, *names, *filter(None, [named_rest(code)]))


def owner_of(frame: FrameType) -> object:
    """The object whose method is running; None where it is a function, or the method of a class."""
    first = frame.f_code.co_varnames[: min(1, frame.f_code.co_argcount)]
    owner = next(iter(_held(frame, *first).values()), None)
    return None if own_attributes(owner) is None or issubclass(type(owner), type) else owner


def _held(frame: FrameType, *names: str) -> Dict[str, Any]:
    try:
        return known_names(frame, *names)
    except NotTold:
        return {}


def parameters(code: CodeType) -> Places:
    """The parameters that a function, or a method, takes by name."""
    by_place, bound = code.co_argcount, int(code.co_varnames[:1] in (("self",), ("cls",)))
    names = code.co_varnames[: by_place + code.co_kwonlyargcount]
    return {
        name: number - bound if number < by_place else None
        for number, name in enumerate(names)
        if number >= max(bound, code.co_posonlyargcount)
    }


def takes_any(code: CodeType) -> bool:
    """Whether a function takes arguments that it has no names for, by name and by place: it may hand all on."""
    return bool(code.co_flags & inspect.CO_VARARGS and code.co_flags & inspect.CO_VARKEYWORDS)


def named_rest(code: CodeType) -> str:
    """What a function calls the arguments by name that it has no names for; "" where it takes none."""
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return ""
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]


def taken_by(owner: type) -> Taken:
    """What a class takes: by its `__init__` and, as far as that hands on what it has no names for, by those above."""
    known = _taken.get(owner)
    if known is None:
        known = _taken[owner] = _look_up(owner)
    return known


def _look_up(owner: type) -> Taken:
    taken = Taken({}, [], [])
    for kind in owner.__mro__:
        made = vars(kind).get("__init__")
        code = getattr(inspect.unwrap(made), "__code__", None) if made is not None else None
        if code is None:
            continue
        for name, at in parameters(code).items():
            taken.places.setdefault(name, None if taken.rests else at)
        rest = named_rest(code)
        if not rest:
            break
        taken.rests.append(rest)
        taken.within.append(kind)
    return taken


def all_given(some: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether all of these are plain values and among what was given."""
    return all(
        isinstance(value, PLAIN) and name in given and type(given[name]) is type(value) and given[name] == value
        for name, value in some.items()
    )


def looked_up(owner: type) -> List[str]:
    """Names that are only looked up among the arguments that a class has no names for, as in
    `kwargs.get("num_workers", 2)`."""
    taken = taken_by(owner)
    names: List[str] = []
    for rest, kind in zip(taken.rests, taken.within):
        names += re.findall(rf"\b{re.escape(rest)}(?:\.(?:get|pop)\(\s*|\[\s*)[\"'](\w+)[\"']", _source(kind))
    return names


def by_library(kind: type, table: Mapping[str, str]) -> Optional[str]:
    """What a table has for the library of a class, or of one that it is made of."""
    libraries = (each.__module__.partition(".")[0] for each in kind.__mro__)
    return next((table[each] for each in libraries if each in table), None)


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""
