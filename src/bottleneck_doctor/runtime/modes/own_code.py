"""The user's code objects: those on the stack, those that make batches, and those at given lines.

Live objects go in; code objects from the user's own files come out, for a line profile. Nothing is called and nothing
is changed: classes and functions are read directly from dictionaries, so that no `__getattr__` of the user's runs.
"""

from __future__ import annotations

import functools
import gc
import os
from itertools import islice
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ..process.originals import get_frame
from ..process.user_code import is_users_file
from ..process.uses import with_inner

METHODS = (
    "__getitem__",
    "__getitems__",
    "__iter__",
    "__next__",
    "__call__",
    "forward",
    "transform",
    "_transform",
)
"""Methods in which datasets, collate functions and transforms (of both torchvision versions) do their work."""
MOST_OBJECTS = 2000
"""At most this many objects are looked at. A dataset may hold a million paths; a chain of transforms is found
before."""
MOST_ITEMS = 32
_FUNCTION = 0x1
"""CO_OPTIMIZED, from inspect: set for functions, not for the bodies of classes and modules."""


def on_stack() -> List[CodeType]:
    """Code of the user's frames, innermost first: the function that requests the batch, and all its callers."""
    found: List[CodeType] = []
    frame: Optional[FrameType] = get_frame(1)
    while frame is not None:
        if is_users_file(frame.f_code.co_filename) and frame.f_code not in found:
            found.append(frame.f_code)
        frame = frame.f_back
    return found


def behind(*roots: Any) -> List[CodeType]:
    """The user's code that makes batches. It is reached from `roots` (the dataset, the collate function) through what
    they hold, such as a dataset in a dataset, a chain of transforms or a partial."""
    found: List[CodeType] = []
    queue = list(roots)
    seen: Dict[int, Any] = {}
    while queue and len(seen) < MOST_OBJECTS:
        each = queue.pop(0)
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if type(each) is FunctionType:
            if is_users_file(each.__code__.co_filename) and each.__code__ not in found:
                found.append(each.__code__)
            queue.extend(each.__dict__[name] for name in ("__wrapped__",) if name in each.__dict__)
        else:
            queue.extend(_parts(each))
    return found


def _parts(each: Any) -> Iterator[Any]:
    kind = type(each)
    if kind is MethodType:
        yield each.__func__
        yield each.__self__
    elif issubclass(kind, functools.partial):
        yield each.func
        yield from each.args
        yield from each.keywords.values()
    elif issubclass(kind, list):
        yield from islice(list.__iter__(each), MOST_ITEMS)
    elif issubclass(kind, tuple):
        yield from islice(tuple.__iter__(each), MOST_ITEMS)
    elif issubclass(kind, dict):
        yield from list(islice(dict.values(each), MOST_ITEMS))
    elif not issubclass(kind, type):
        for name in METHODS:
            method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
            if type(method) is FunctionType:
                yield method
        try:
            held = object.__getattribute__(each, "__dict__")
        except Exception:  # It has none, or makes one up.
            return
        if type(held) is dict:
            yield from list(held.values())


def at(places: Iterable[Dict[str, Any]]) -> List[CodeType]:
    """Code of the functions at `places`, each with a `path`, a `line` inside it and its `name`. Those that are not
    loaded are left out."""
    wanted: Dict[str, List[Dict[str, Any]]] = {}
    for place in places:
        wanted.setdefault(os.path.realpath(place["path"]), []).append(place)
    if not wanted:
        return []
    running = on_stack()
    known = running + [each.__code__ for each in gc.get_objects() if type(each) is FunctionType]
    files: Dict[str, str] = {}
    loaded: Dict[str, List[CodeType]] = {path: [] for path in wanted}
    for code in known:
        path = files.get(code.co_filename)
        if path is None:
            path = files[code.co_filename] = os.path.realpath(code.co_filename)
        if path in loaded:
            loaded[path].extend(with_inner(code))
    found: List[CodeType] = []
    for path, asked in wanted.items():
        for place in asked:
            innermost = _innermost(loaded[path], place, running)
            if innermost is not None and innermost not in found:
                found.append(innermost)
    return found


def _innermost(codes: List[CodeType], place: Dict[str, Any], running: List[CodeType]) -> Optional[CodeType]:
    """The innermost function around a line. A comprehension counts as part of the function that contains it."""
    name = str(place.get("name", "")).rpartition(".")[2]
    best: Optional[Tuple[Tuple[int, bool], CodeType]] = None
    for code in codes:
        function = code.co_flags & _FUNCTION and (code.co_name[:1] != "<" or code.co_name == "<lambda>")
        if not (function or code in running) or not code.co_firstlineno <= place["line"] <= last_line(code):
            continue
        rank = (code.co_firstlineno if function else 0, code.co_name == name)
        if best is None or rank > best[0]:
            best = (rank, code)
    return best[1] if best is not None else None


def last_line(code: CodeType) -> int:
    """The last line of a function, counted with the functions inside it."""
    return max(line or 0 for each in with_inner(code) for line in _lines(each))


def _lines(code: CodeType) -> Iterator[int]:
    yield code.co_firstlineno
    for _, _, line in code.co_lines():
        if line is not None:
            yield line
