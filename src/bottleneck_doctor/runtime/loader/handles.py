"""Keeps files that the main process opens separate from files that loader workers open.

A dataset that opens its file lazily, in the first `__getitem__`, works with workers: each opens its own file. A window
that loads in the main process would open it there, and workers forked later would share one handle, with its position
and the library's state: they would read each other's data. So if the user has workers, the main process loads from a
copy of the dataset. If the user has none, workers get a copy in which everything opened since the loader was made is as
it was then. Only objects that may hold a handle are copied; the samples are shared.

Some libraries let a process open a file only once, and treat a forked worker like the process that it came from. In
this case the worker closes the handles of the other copy before it opens its own.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import enum
import io
import os
import sys
import types
import weakref
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from torch.utils.data import Dataset, IterableDataset, IterDataPipe, MapDataPipe

from ..process.user_code import is_users_file

_KINDS = frozenset(
    {
        ("av", "InputContainer"),
        ("cv2", "VideoCapture"),
        ("decord", "AudioReader"),
        ("decord", "VideoReader"),
        ("h5py", "Dataset"),
        ("h5py", "Group"),
        ("lmdb", "Cursor"),
        ("lmdb", "Environment"),
        ("lmdb", "Transaction"),
        ("netCDF4", "Dataset"),
        ("psycopg", "Connection"),
        ("psycopg2", "connection"),
        ("pymongo", "MongoClient"),
        ("rasterio", "DatasetReader"),
        ("redis", "Redis"),
        ("sqlite3", "Connection"),
        ("tables", "File"),
        ("tarfile", "TarFile"),
        ("zipfile", "ZipFile"),
    }
)
"""Libraries and classes (with subclasses) whose objects are an open file or connection, besides Python's own files."""
_NAMES = frozenset(name for _, name in _KINDS)
_EXCLUSIVE = frozenset({("lmdb", "Environment")})
"""Classes of which a process may not have two objects open for the same file."""
_LONG = 256
"""A container with more entries holds data, and is shared as it is."""
_DEEP = 6
_MOST = 4096
"""At most this many objects and containers are looked into, so that making a loader takes no noticeable time."""
_CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict)
_OPTIONS = (dict, argparse.Namespace, types.SimpleNamespace)
"""Kinds of options, with subclasses. Some datasets take out of them what they open, so that each needs its own."""
_PLAIN = (bool, int, float, str, type(None))
_LARGE: Any = object()
"""Stands for a value that existed but is not kept alive."""

_undying: List[Any] = []
"""Copies whose class has a `__del__`, kept alive because that would close what the copy shares with its original."""

Change = Callable[[Any, str, Any], Any]
"""What an attribute of an object becomes in the copy, from the object, its name and its value; `_GONE`: nothing."""
_GONE: Any = object()


class Noted:
    """What datasets held when a loader was first made of them. Anything opened since then was opened lazily."""

    def __init__(self) -> None:
        self._owners: Dict[int, Tuple[Any, Dict[str, Any]]] = {}

    def note(self, dataset: Any) -> None:
        """A loader was made. Notes of objects that were seen before stay, as when the loader is made for every
        epoch."""
        _walk(dataset, self._note)

    def _note(self, owner: Any) -> None:
        key = id(owner)
        if key in self._owners and self._owners[key][0]() is owner:
            return
        try:
            reference = weakref.ref(owner, lambda _: self._owners.pop(key, None))
        except TypeError:
            return
        self._owners[key] = (reference, {name: _small(value) for name, value in vars(owner).items()})

    def note_flags(self, dataset: Any) -> None:
        """An iteration is about to begin. As long as nothing was opened, flags have the values that the user wants."""
        if not self.opened_late(dataset):
            _walk(dataset, self._note_flags)

    def _note_flags(self, owner: Any) -> None:
        known = self._known(owner)
        if known is not None:
            known.update({name: value for name, value in vars(owner).items() if isinstance(value, bool)})

    def _known(self, owner: Any) -> Optional[Dict[str, Any]]:
        reference, attributes = self._owners.get(id(owner), (lambda: None, {}))
        return attributes if reference() is owner else None

    def open_since(self, owner: Any, name: str, value: Any) -> bool:
        """Whether this attribute of a known object holds something that was opened later."""
        known = self._known(owner)
        if known is None or self._known(value) is not None:
            return False
        if _first_handle(value) is None:
            return self._holds_newcomer(value)
        before = known.get(name)
        return _first_handle(before) is None if isinstance(value, _CONTAINERS) else before is not value

    def _holds_newcomer(self, value: Any) -> bool:
        """Whether a value leads to an object with a handle that was made later."""
        found: List[bool] = []

        def visit(owner: Any) -> None:
            new = self._known(owner) is None
            found.append(new and any(_first_handle(held) is not None for held in vars(owner).values()))

        _walk(value, visit)
        return any(found)

    def as_it_was(self, owner: Any, name: str, value: Any) -> Any:
        """A `Change` that restores the earlier value of what was opened later, and of flags that were set since,
        because a flag may say that something is open."""
        if value is True and (self._known(owner) or {}).get(name) is False:
            return False
        if not self.open_since(owner, name, value):
            return value
        before = (self._known(owner) or {}).get(name, _GONE)
        if isinstance(before, (list, dict)):
            return before.copy()
        if before is _LARGE:
            return _without_handles(value) if isinstance(value, _CONTAINERS) else None
        return before

    def opened_late(self, dataset: Any) -> bool:
        """Whether anything in a dataset was opened since."""
        found: List[bool] = []

        def visit(owner: Any) -> None:
            found.append(any(self.open_since(owner, name, value) for name, value in list(vars(owner).items())))

        _walk(dataset, visit)
        return any(found)

    def opened_early(self, dataset: Any) -> str:
        """What was already open, as class, attribute and type; "" if nothing was."""
        found: List[str] = []

        def visit(owner: Any) -> None:
            for name, value in (self._known(owner) or {}).items():
                held = _first_handle(value)
                if held is not None:
                    found.append(f"`{type(owner).__name__}.{name}`, an open {type(held).__name__}")

        _walk(dataset, visit)
        return found[0] if found else ""


class DatasetCopy:
    """A copy of a dataset for another process to load from. `refresh` copies what the user has since set in the
    original."""

    def __init__(self, dataset: Any, change: Optional[Change] = None) -> None:
        self.original = dataset
        self._change: Change = change or (lambda owner, name, value: value)
        self._restores = change is not None
        self._pairs: Dict[int, Tuple[Any, Any, Dict[str, Any]]] = {}
        self._entries: List[Tuple[Any, Any, Dict[Any, Any]]] = []
        """Dictionaries and options, their copies, and what they held when that was copied last. Of what is put into
        them later, only plain values are copied: anything else may hold a handle."""
        self._looks = 0
        self.copy = self._copied(dataset, 0)

    def refresh(self) -> None:
        self._looks = 0
        for owner, copied, seen in list(self._pairs.values()):
            now = dict(vars(owner))
            for name, value in now.items():
                if name not in seen or seen[name] is not value:
                    self._set(owner, copied, name, value, 0)
            for name in seen.keys() - now.keys():
                copied.__dict__.pop(name, None)
            seen.clear()
            seen.update(now)
        for original, copied, seen in self._entries:
            if len(_entries(original)) <= _LONG:  # Else it has become a cache.
                now = {key: held for key, held in _entries(original).items() if isinstance(held, _PLAIN)}
                new = {key: held for key, held in now.items() if key not in seen or seen[key] is not held}
                _entries(copied).update(new)
                seen.update(new)

    def _set(self, owner: Any, copied: Any, name: str, value: Any, deep: int) -> None:
        changed = self._change(owner, name, value)
        if changed is _GONE:
            copied.__dict__.pop(name, None)
        else:
            copied.__dict__[name] = self._copied(changed, deep + 1)

    def _copied(self, value: Any, deep: int) -> Any:
        if id(value) in self._pairs:
            return self._pairs[id(value)][1]
        self._looks += 1
        if deep > _DEEP or self._looks > 8 * _MOST:
            return value
        if _is_holder(value):
            try:
                copied = object.__new__(type(value))
            except TypeError:  # Made of something in C: its state is not ours to copy.
                return self._options(value) if deep else value
            if hasattr(type(value), "__del__"):
                _undying.append(copied)
            self._pairs[id(value)] = (value, copied, dict(vars(value)))
            for name, held in list(vars(value).items()):
                self._set(value, copied, name, held, deep)
            return copied
        if type(value) in _CONTAINERS and len(value) <= _LONG:
            if isinstance(value, dict):
                made = value.copy()
                made.update((key, self._copied(held, deep + 1)) for key, held in value.items())
                return self._noted(value, made)
            return type(value)(self._copied(held, deep + 1) for held in value)
        return self._options(value) if deep else value

    def _options(self, value: Any) -> Any:
        """A copy of options of another class, with the same values; anything else as it is."""
        if not isinstance(value, _OPTIONS) or type(value) in _CONTAINERS or len(_entries(value)) > _LONG:
            return value
        try:
            return self._noted(value, copy.copy(value))
        except Exception:  # Of a class that can't be copied.
            return value

    def _noted(self, value: Any, made: Any) -> Any:
        """The copy that was made of a dictionary or of options. Where the copy shall be as things were, it stays so: a
        flag that was set since may say that something is open."""
        if not self._restores:
            self._entries.append((value, made, dict(_entries(value))))
        return made


def _entries(value: Any) -> Any:
    """What a dictionary or a namespace holds, to be read and written."""
    return value if isinstance(value, dict) else vars(value)


def exclusive(dataset: Any) -> List[Any]:
    """The handles in a dataset because of which its process can't open the same file again."""
    found: List[Any] = []

    def visit(owner: Any) -> None:
        for value in list(vars(owner).values()):
            found.extend(each for each in _inside(value) if _is_of(each, _EXCLUSIVE))

    _walk(dataset, visit)
    return found


def opens_exclusively() -> bool:
    """Whether a library is loaded that lets a process and those forked from it open a file only once."""
    return any(library in sys.modules for library, _ in _EXCLUSIVE)


_let_go: List[Any] = []
_watching = False


@contextlib.contextmanager
def let_go(handles: List[Any]) -> Iterator[None]:
    """Processes that are forked in this context close these handles, which they inherit and don't use."""
    global _watching
    if handles and not _watching:
        _watching = True
        os.register_at_fork(after_in_child=_close_in_child)
    _let_go.extend(handles)
    try:
        yield
    finally:
        _let_go.clear()


def _close_in_child() -> None:
    for each in _let_go:
        try:
            each.close()
        except Exception:  # The worker may find it open, and says so.
            pass
    _let_go.clear()


def _walk(value: Any, visit: Callable[[Any], None], seen: Optional[Dict[int, Any]] = None) -> None:
    """Call `visit` for every object that may hold a handle."""
    seen = {} if seen is None else seen
    if id(value) in seen or len(seen) > _MOST:
        return
    if _is_holder(value):
        seen[id(value)] = value
        visit(value)
        for held in list(vars(value).values()):
            _walk(held, visit, seen)
    elif type(value) in _CONTAINERS and len(value) <= _LONG:
        seen[id(value)] = value
        for held in list(value.values() if isinstance(value, dict) else value):
            _walk(held, visit, seen)


def _is_holder(value: Any) -> bool:
    """Whether an object's attributes are looked into: datasets, and objects of the user's own classes."""
    if isinstance(value, type) or not hasattr(value, "__dict__") or isinstance(value, (IterDataPipe, MapDataPipe)):
        return False
    if isinstance(value, enum.Enum):  # There is one of each, and code asks whether it is that one.
        return False
    kind = type(value)
    if any(vars(each).get("__slots__") for each in kind.__mro__[:-1]):
        return False
    if isinstance(value, (Dataset, IterableDataset)):
        return True
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and is_users_file(file))


def _small(value: Any) -> Any:
    """What is remembered of a value: short containers as they were, and nothing that keeps large objects alive."""
    if type(value) in _CONTAINERS and len(value) <= _LONG:
        inside = value.values() if isinstance(value, dict) else value
        if all(_is_small(each) for each in inside):
            return value if isinstance(value, tuple) else value.copy()
    return value if _is_small(value) else _LARGE


def _is_small(value: Any) -> bool:
    return isinstance(value, _PLAIN) or _is_handle(value)


def _without_handles(value: Any) -> Any:
    """A container without its handles: they are removed from a dictionary, and None in a list."""
    if isinstance(value, dict):
        made = value.copy()
        for key in [key for key, held in value.items() if _is_handle(held)]:
            del made[key]
        return made
    return type(value)(None if _is_handle(held) else held for held in value)


def _first_handle(value: Any) -> Any:
    return next((each for each in _inside(value) if _is_handle(each)), None)


def _inside(value: Any) -> List[Any]:
    """The value itself, or the entries of a container that is not long."""
    if type(value) not in _CONTAINERS:
        return [value]
    if len(value) > _LONG:
        return []
    return list(value.values() if isinstance(value, dict) else value)


def _is_handle(value: Any) -> bool:
    if isinstance(value, (io.StringIO, io.BytesIO)):
        return False
    if isinstance(value, io.IOBase):
        return not value.closed
    return _is_of(value, _KINDS)


def _is_of(value: Any, kinds: FrozenSet[Tuple[str, str]]) -> bool:
    for kind in type(value).__mro__:
        library, name = kind.__module__.split(".")[0], kind.__name__
        if (library, name) in kinds:
            return True
        # A type of a library in C may not say whose it is, as lmdb's.
        if name in _NAMES and library == "builtins":
            return any(each == name and getattr(sys.modules.get(whose), name, None) is kind for whose, each in kinds)
    return False
