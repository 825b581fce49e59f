"""What takes a loader's arguments if a library makes it: the function that the user's line calls, as `fit` of a
library's trainer, or the class of an object, as that trainer. The loader is told apart by what it was given: a
parameter counts if it is called alike and has the same value."""

from __future__ import annotations

import inspect
import re
from types import CodeType, FrameType
from typing import Any, Dict, List, Mapping, Optional

import torch.utils.data.dataloader as dataloader

from ..process.user_code import is_users_file
from ..wire.messages import Taker

NAMES = tuple(inspect.signature(dataloader.DataLoader.__init__).parameters)[2:]
"""What a loader is given beside its dataset."""
_PREFIXES = {"skorch": "iterator_train__"}
"""Libraries whose classes take all arguments of their training loader behind a prefix."""
_HOLDS_THEM = re.compile(r"(data_?)?loader_?(kwargs|args|params|options)|dl_kwargs")
"""What a dict of them is called as an argument, as `dataloader_kwargs` of darts."""
_PLAIN = (bool, int, float, str, type(None))
_NOWHERE = 1000
"""The place of a parameter that is given by name only."""

_taken_by_class: Dict[Any, Dict[str, int]] = {}


def takers_of(frame: Optional[FrameType], loader: Any, given: Mapping[str, Any]) -> Optional[List[Taker]]:
    """What takes arguments of a loader that is made in this frame, the function first; None where the user's own line
    makes it. `given`: what it was given by name."""
    within: List[FrameType] = []
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        within.append(frame)
        frame = frame.f_back
    if frame is None or not within:
        return None
    within.reverse()
    try:
        values = {name: given[name] if name in given else getattr(loader, name, None) for name in NAMES}
        plain = {name: value for name, value in values.items() if isinstance(value, _PLAIN)}
        return [*_by_call(within, plain, given), *_by_objects(within, plain, given, loader)]
    except Exception:  # Whatever attributes and sources of a library make of the question.
        return []


def _by_call(within: List[FrameType], values: Mapping[str, Any], given: Mapping[str, Any]) -> List[Taker]:
    """The function that the user's line calls. It takes no names if it is known to refuse them; nothing is said where
    that is not known."""
    for frame in within:
        code, held = frame.f_code, frame.f_locals
        places = {name: at for name, at in _parameters(code).items() if name in values}
        taken = {name: at for name, at in places.items() if name in held and _same(held[name], values[name])}
        holding = [name for name in _parameters(code) if name in held and _holds_them(name, held[name], given)]
        if holding and "num_workers" not in taken:
            return [_within("", holding[0], values)]
        if taken:
            return [_taker("", taken, _is_bound(code))]
        if "num_workers" in places:
            return []  # What it makes of its value is not known.
        if places or not code.co_flags & inspect.CO_VARKEYWORDS:
            return [Taker()]
        more = held.get(_named_rest(code))
        if isinstance(more, dict) and more and all(name in given and given[name] is more[name] for name in more):
            return [Taker(names={name: name for name in values}, before=code.co_argcount - _is_bound(code))]
        if not code.co_flags & inspect.CO_VARARGS:
            return []
    return []


def _by_objects(
    within: List[FrameType], values: Mapping[str, Any], given: Mapping[str, Any], loader: Any
) -> List[Taker]:
    """Objects whose methods lead to the loader, by their classes."""
    made: List[Taker] = []
    seen = {id(loader)}
    for frame in within:
        code = frame.f_code
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if id(owner) in seen or isinstance(owner, (*_PLAIN, type)) or not hasattr(owner, "__dict__"):
            continue
        seen.add(id(owner))
        prefix = next((_PREFIXES[each] for each in _libraries(type(owner)) if each in _PREFIXES), None)
        if prefix is not None:
            made.append(Taker(type(owner).__name__, {name: f"{prefix}{name}" for name in values}, _NOWHERE))
            continue
        held, known = vars(owner), _taken_by(type(owner))
        taken = {
            name: at
            for name, at in known.items()
            if name in values and name in held and _same(held[name], values[name])
        }
        holding = [name for name in known if name in held and _holds_them(name, held[name], given)]
        if holding and "num_workers" not in taken:
            made.append(_within(type(owner).__name__, holding[0], values))
        elif taken:
            made.append(_taker(type(owner).__name__, taken))
    return made


def _taker(made: str, taken: Mapping[str, int], bound: int = 0) -> Taker:
    return Taker(made, {name: name for name in taken}, min(taken.values()) - bound)


def _within(made: str, holding: str, values: Mapping[str, Any]) -> Taker:
    return Taker(made, {name: name for name in values}, _NOWHERE, holding)


def _holds_them(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether an argument of this name and value is a dict of what the loader was given, or stands for none."""
    if _HOLDS_THEM.fullmatch(name) is None or not isinstance(value, (dict, type(None))):
        return False
    return all(key in given and given[key] is each for key, each in (value or {}).items())


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _parameters(code: CodeType) -> Dict[str, int]:
    """The places of the parameters that a function takes by name."""
    by_place, by_name = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: by_place + by_name]
    return {
        name: number if number < by_place else _NOWHERE
        for number, name in enumerate(names)
        if number >= code.co_posonlyargcount
    }


def _is_bound(code: CodeType) -> int:
    """1 if the first argument is an object, or a class, that the call has before its point; otherwise 0."""
    return int(bool(code.co_argcount) and code.co_varnames[0] in ("self", "cls"))


def _named_rest(code: CodeType) -> str:
    """What a function calls the arguments that it has no names for."""
    before = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return code.co_varnames[before]


def _taken_by(owner: type) -> Dict[str, int]:
    """The places of arguments that a class takes by name: those of its `__init__` and, as far as that hands on what it
    has no names for, of the classes above. Some are only looked up: `kwargs.get("num_workers")`."""
    known = _taken_by_class.get(owner)
    if known is None:
        known = _taken_by_class[owner] = _look_up(owner)
    return known


def _look_up(owner: type) -> Dict[str, int]:
    taken: Dict[str, int] = {}
    for kind in owner.__mro__:
        made = vars(kind).get("__init__")
        code = getattr(inspect.unwrap(made), "__code__", None) if made is not None else None
        if code is None:
            continue
        for name, at in _parameters(code).items():
            taken.setdefault(name, _NOWHERE if taken else at - 1)
        if not code.co_flags & inspect.CO_VARKEYWORDS:
            break
        rest = re.escape(_named_rest(code))
        asked = re.findall(rf"\b{rest}(?:\.(?:get|pop)\(\s*|\[\s*)[\"'](\w+)[\"']", _source(kind))
        for name in asked:
            taken.setdefault(name, _NOWHERE)
    return taken


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def _libraries(kind: type) -> List[str]:
    return [each.__module__.partition(".")[0] for each in kind.__mro__]
