"""Where the user's code makes a transform: the line that calls its class, found in the source of the loaded modules.

A line is named only if no other is possible. If several are, the line must be the only one that stands in a list like
that of the chain; else the only one whose arguments do not contradict the object; else the only one in the file that
makes the loader. Otherwise none is named.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
import types
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..process.originals import now
from ..process.user_code import is_users_file
from ..wire import notebooks
from ..wire.messages import Site
from .reach import Group, is_users_class

_LARGEST = 1_000_000
_MOST_FILES = 300
_SECONDS = 1.5
"""Larger files, and more files, are not read; a search that takes longer is given up."""
_PRESETS = frozenset({"create_transform", "create_loader"})
"""Functions of timm that make a whole chain."""
_UNKNOWN: Any = object()


class _Call(NamedTuple):
    """A call of a class in the user's source."""

    site: Site
    node: ast.Call
    above: Tuple[ast.AST, ...]
    """The nodes that contain the call, outermost first."""
    source: "_Source"


class _Source(NamedTuple):
    path: str
    names: Dict[str, Any]
    """Globals of the module."""
    aliases: Dict[str, str]
    """Names that are imported inside functions, with their meaning."""

    def meant(self, function: ast.expr) -> Tuple[Any, str]:
        """The object that a call calls (`_UNKNOWN` if it can't be found out), and the last part of its name."""
        if isinstance(function, ast.Name):
            return self.names.get(function.id, _UNKNOWN), self.aliases.get(function.id, function.id)
        if isinstance(function, ast.Attribute):
            base, _ = self.meant(function.value)
            # Read the module's dictionary, because getting an attribute may import something.
            held = vars(base) if isinstance(base, types.ModuleType) else {}
            return held.get(function.attr, _UNKNOWN), function.attr
        return _UNKNOWN, ""

    def makes(self, call: ast.Call, kind: type) -> bool:
        """Whether a call makes an object of this class."""
        meant, name = self.meant(call.func)
        return meant is kind if meant is not _UNKNOWN else name == kind.__name__


def made_sites(groups: Sequence[Group], datasets: Sequence[Any], loader_file: str) -> Dict[int, Site]:
    """Where elements of the groups are made, by their `id`; unknown ones are left out. `datasets`: all that wrap or
    hold them; `loader_file`: the file where the loader was made ("" if unknown). Never raises."""
    try:
        kinds = {type(each) for group in groups for each in group.elements if _is_made(each)}
        if not kinds:
            return {}
        near = {loader_file, *(_file_of(sys.modules.get(type(each).__module__)) for each in datasets)}
        calls, presets = _calls(kinds | {type(each) for each in datasets}, kinds, near)
        found: Dict[int, Site] = {}
        for group in groups:
            found.update(_Search(group, datasets, loader_file, calls).sites() or _preset(group, presets))
        return found
    except Exception:  # Then no place is named.
        return {}


def _is_made(element: Any) -> bool:
    """Whether it is an object that a call of a class made, and not a function."""
    return not isinstance(element, (types.FunctionType, types.BuiltinFunctionType, types.MethodType))


# -- reading the source ----------------------------------------------------------------------------------------------


class _TooLong(Exception):
    pass


def _calls(kinds: Set[type], wanted: Set[type], near: Set[str]) -> Tuple[Dict[type, List[_Call]], List[_Call]]:
    """All calls of each class, and those of presets, in the user's files. Raises `_TooLong` past the time."""
    end = now() + _SECONDS
    found: Dict[type, List[_Call]] = {kind: [] for kind in kinds}
    presets: List[_Call] = []
    words = {kind.__name__ for kind in wanted} | _PRESETS | {".transforms("}
    for path, module in _users_files(near):
        if now() > end:
            raise _TooLong
        text = _text(path)
        if not any(word in text for word in words):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        source = _Source(path, dict(vars(module)), _aliases(tree))
        for node, above in _walk(tree):
            line = getattr(node.func, "end_lineno", None) or node.lineno
            call = _Call(Site(path, line), node, above, source)
            for kind in kinds:
                if source.makes(node, kind):
                    found[kind].append(call)
            if _is_preset(call):
                presets.append(call)
    return found, presets


def _users_files(near: Set[str]) -> List[Tuple[str, types.ModuleType]]:
    """The user's loaded files. The script and those `near` come first, because in a large project not all are read."""
    found: Dict[str, types.ModuleType] = {}
    for module in [sys.modules.get("__main__"), *list(sys.modules.values())]:
        path = _file_of(module)
        if path.endswith(notebooks.SOURCES) and is_users_file(path):
            found.setdefault(path, module)  # type: ignore[arg-type]  # what has a file is a module
    first = next(iter(found), "")
    return sorted(found.items(), key=lambda each: each[0] != first and each[0] not in near)[:_MOST_FILES]


def _file_of(module: Any) -> str:
    """The path of a module's source; "" where it has none."""
    path = vars(module).get("__file__") if isinstance(module, types.ModuleType) else None
    return os.path.abspath(path) if isinstance(path, str) else ""


def _text(path: str) -> str:
    try:
        if os.path.getsize(path) > _LARGEST and not notebooks.is_notebook(path):
            return ""
        with open(path, "rb") as handle:
            return notebooks.program_of(path, handle.read()).decode("utf-8", "replace")
    except OSError:
        return ""


def _walk(tree: ast.AST) -> Iterator[Tuple[ast.Call, Tuple[ast.AST, ...]]]:
    waiting: List[Tuple[ast.AST, Tuple[ast.AST, ...]]] = [(tree, ())]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, above
        # Beyond a statement nothing says what an expression is made for.
        inside = () if isinstance(node, ast.stmt) else (*above, node)
        waiting.extend((child, inside) for child in ast.iter_child_nodes(node))


def _aliases(tree: ast.AST) -> Dict[str, str]:
    return {
        each.asname: each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if each.asname
    }


# -- which of them it is ---------------------------------------------------------------------------------------------


class _Search:
    """The calls that made one group."""

    def __init__(self, group: Group, datasets: Sequence[Any], loader_file: str, calls: Dict[type, List[_Call]]) -> None:
        self._group = group
        self._datasets = datasets
        self._file = loader_file
        self._calls = calls
        self._whole = all(calls.get(type(each)) for each in group.elements if _is_made(each))

    def sites(self) -> Dict[int, Site]:
        elements = self._group.elements
        if self._group.lone:
            return self._named([self._one(self._lone_calls(elements[0]))])
        rows = self._rows()
        exact = [row for (whole, _), row in rows if whole]
        chosen = self._one(exact)
        if exact and chosen is None:
            return {}
        # Otherwise the chain was built from several lists, or one by one; and a list may name objects made before.
        named: List[Optional[Dict[int, _Call]]] = [chosen]
        for place, element in enumerate(elements):
            if chosen is not None and place in chosen:
                continue
            able = [] if exact else [(score, {place: row[place]}) for score, row in rows if place in row]
            if not able and _is_made(element) and (self._whole or is_users_class(type(element))):
                able = [
                    ((False, 1), {place: call}) for call in self._calls[type(element)] if self._row_of(call) is None
                ]
            best = max((score for score, _ in able), default=None)
            named.append(self._one([row for score, row in able if score == best]))
        return self._named(named)

    def _named(self, rows: Sequence[Optional[Dict[int, _Call]]]) -> Dict[int, Site]:
        elements = self._group.elements
        return {id(elements[place]): call.site for row in rows if row for place, call in row.items()}

    def _lone_calls(self, element: Any) -> List[Dict[int, _Call]]:
        if not _is_made(element):
            return []
        calls = self._calls[type(element)]
        able = [call for call in calls if self._row_of(call) is None and _is_same_partial(call, element)]
        for_holder = [call for call in able if self._given_to(call, [self._group.holder])]
        for_dataset = [call for call in able if self._given_to(call, self._datasets)]
        return [{0: call} for call in for_holder or for_dataset or able]

    def _rows(self) -> List[Tuple[Tuple[bool, int], Dict[int, _Call]]]:
        """Lists that make elements of the chain in its order: how well each list fits, and its calls by place."""
        rows: Dict[int, Dict[int, _Call]] = {}
        fits: Dict[int, Tuple[bool, int]] = {}
        for kind in {type(each) for each in self._group.elements if _is_made(each)}:
            for call in self._calls[kind]:
                row = self._row_of(call)
                if row is None or id(row) in rows:
                    continue
                exact = self._in_order(row, call.source, whole=True)
                # The list may be a part of the chain, but only if the user's code makes all of the chain.
                placed = exact or (self._in_order(row, call.source, whole=False) if self._whole else None)
                if placed:
                    by_node = {id(each.node): each for all_of in self._calls.values() for each in all_of}
                    rows[id(row)] = {place: by_node[id(node)] for place, node in placed.items()}
                    fits[id(row)] = (bool(exact), len(placed))
        return [(fits[key], row) for key, row in rows.items()]

    def _row_of(self, call: _Call) -> Optional[List[ast.expr]]:
        """The list that contains the call, or the arguments of a call that may make a chain."""
        around = call.above[-1] if call.above else None
        if isinstance(around, (ast.List, ast.Tuple)):
            return around.elts
        if isinstance(around, ast.Call) and len(around.args) > 1 and call.node in around.args:
            chain = all(isinstance(each, ast.Call) for each in around.args) and not self._given_to(call, self._datasets)
            return around.args if chain else None
        return None

    def _in_order(self, row: List[ast.expr], source: _Source, *, whole: bool) -> Optional[Dict[int, ast.Call]]:
        """Which element each call in a list makes; None if one makes none, or (`whole`) if the numbers differ."""
        elements = self._group.elements
        if whole and (len(row) != len(elements) or any(isinstance(each, ast.Starred) for each in row)):
            return None
        placed: Dict[int, ast.Call] = {}
        place = 0
        for position, node in enumerate(row):
            if not isinstance(node, ast.Call) or _is_function(node, source):
                continue
            places = [position] if whole else range(place, len(elements))
            fitting = next((each for each in places if source.makes(node, type(elements[each]))), None)
            if fitting is None:
                return None
            placed[fitting] = node
            place = fitting + 1
        return placed

    def _one(self, rows: List[Dict[int, _Call]]) -> Optional[Dict[int, _Call]]:
        """The only one of these. If there are several, arguments decide, then the loader's file; None if several
        remain."""
        agreeing = [row for row in rows if not any(self._contradicts(*each) for each in row.items())] or rows
        near = [row for row in agreeing if all(call.site.file == self._file for call in row.values())]
        return next((able[0] for able in (agreeing, near) if len(able) == 1), None)

    def _contradicts(self, place: int, call: _Call) -> bool:
        if _differs(call.node, self._group.elements[place]):
            return True
        for node in call.above:
            if isinstance(node, ast.Call):
                made = [each for each in self._datasets if call.source.makes(node, type(each))]
                if made and all(_differs(node, each) for each in made):
                    return True
        return False

    @staticmethod
    def _given_to(call: _Call, objects: Sequence[Any]) -> bool:
        """Whether the call is an argument of another call that makes an object of the class of one of these objects."""
        above = [node for node in call.above if isinstance(node, ast.Call)]
        return bool(above) and any(call.source.makes(above[-1], type(each)) for each in objects)


def _is_function(node: ast.Call, source: _Source) -> bool:
    """Whether the call calls a function, which may return anything."""
    meant, name = source.meant(node.func)
    return not isinstance(meant, type) if meant is not _UNKNOWN else not name[:1].isupper()


def _is_same_partial(call: _Call, element: Any) -> bool:
    if not isinstance(element, functools.partial):
        return True
    meant, name = call.source.meant(call.node.args[0]) if call.node.args else (_UNKNOWN, "")
    return meant is element.func if meant is not _UNKNOWN else name == getattr(element.func, "__name__", None)


def _differs(node: ast.Call, made: Any) -> bool:
    """Whether an argument that is a literal has another value of the same type in the object."""
    held = getattr(made, "__dict__", {})
    try:
        names = list(inspect.signature(type(made)).parameters)
    except (TypeError, ValueError):
        names = []
    given: Iterable[Tuple[Optional[str], ast.expr]] = [
        *zip(names, node.args),
        *((keyword.arg, keyword.value) for keyword in node.keywords),
    ]
    for name, expression in given:
        try:
            value = ast.literal_eval(expression)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if name in held and type(held[name]) is type(value) and held[name] != value:
            return True
    return False


# -- chains that a library makes -------------------------------------------------------------------------------------


def _is_preset(call: _Call) -> bool:
    meant, name = call.source.meant(call.node.func)
    if isinstance(meant, types.FunctionType) and is_users_file(meant.__code__.co_filename):
        return False
    return name in _PRESETS or (
        # Of torchvision's weights: it is given no sample.
        name == "transforms" and isinstance(call.node.func, ast.Attribute) and not call.node.args
    )


def _preset(group: Group, presets: List[_Call]) -> Dict[int, Site]:
    """The user's line that calls a library to make the whole group, if there is exactly one."""
    libraries = {type(each).__module__.split(".")[0] for each in group.elements}
    if "timm" in libraries:
        able = [call for call in presets if call.source.meant(call.node.func)[1] in _PRESETS]
    elif any(type(each).__module__ == "torchvision.transforms._presets" for each in group.elements):
        able = [call for call in presets if call.source.meant(call.node.func)[1] == "transforms"]
    else:
        return {}
    if len(able) != 1:
        return {}
    return {id(each): able[0].site for each in group.elements if _is_made(each) and not is_users_class(type(each))}
