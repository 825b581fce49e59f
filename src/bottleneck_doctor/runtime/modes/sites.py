"""Where the user's own part of something begins: a function, a dataset under wrappers, a transform."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from types import MethodType
from typing import Any, Dict, Optional, Tuple

from torch.utils.data import Dataset

from ..process.user_code import is_users_file
from ..wire.messages import Site

_WRAPPED = ("dataset", "datasets", "_dataset", "source_datapipe", "_datapipe")
"""Attributes under which wrappers keep the dataset they wrap: torch's, torchvision's, torchdata's."""
_MOST_WRAPPED = 64
"""At most this many datasets are searched for a method of the user's."""


def plain_function(function: Any) -> Any:
    """What is finally called, under partials and under a transform that only calls what it was given."""
    for _ in range(8):
        inner = getattr(function, "lambd", None)
        if isinstance(function, functools.partial):
            function = function.func
        elif callable(inner):
            function = inner
    return function


def function_site(function: Any) -> Optional[Site]:
    """The first line of a function, method, partial or callable object; None where it is not the user's own."""
    code = _code_of(function)
    if code is None or not is_users_file(code.co_filename):
        return None
    return Site(os.path.abspath(code.co_filename), code.co_firstlineno)


def _code_of(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        function = inspect.unwrap(function)
    except ValueError:
        return None
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        caller = vars(type(function)).get("__call__") or getattr(type(function), "forward", None)
        code = getattr(caller, "__code__", None)
    return code


def function_name(function: Any) -> Tuple[str, str]:
    """Name and module of a function, method or partial; of a callable object, those of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if isinstance(getattr(function, "__name__", None), str) else type(function)
    name = named.__qualname__ if isinstance(named, MethodType) else named.__name__
    return str(name), str(getattr(named, "__module__", None) or "")


def class_site(kind: type) -> Optional[Site]:
    """The line where a class of the user's own begins."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None or not is_users_file(file):
        return None
    try:
        return Site(os.path.abspath(file), inspect.getsourcelines(kind)[1])
    except (OSError, TypeError):
        return None


def fetch_site(dataset: Any) -> Optional[Site]:
    """Where the user's own `__getitems__`, `__getitem__` or `__iter__` begins: the outermost one under all wrappers."""
    waiting, seen = [dataset], 0
    while waiting and seen < _MOST_WRAPPED:
        each, seen = waiting.pop(0), seen + 1
        held = getattr(each, "__dict__", None)
        held = held if type(held) is dict else {}
        # A transform that Hugging Face's datasets call for each item is where the user's own work is.
        formatting = held.get("_format_kwargs")
        if isinstance(formatting, dict) and callable(formatting.get("transform")):
            return function_site(formatting["transform"])
        for name in ("__getitems__", "__getitem__", "__iter__"):
            site = function_site(getattr(type(each), name, None))
            if site is not None:
                return site
        mapped = function_site(held["fn"]) if callable(held.get("fn")) else None
        if mapped is not None:  # What a data pipe calls for each item.
            return mapped
        for name, inner in held.items():
            inside = inner[:8] if type(inner) in (list, tuple) else list(inner.values())[:8] if _few(inner) else [inner]
            waiting += [value for value in inside if name in _WRAPPED or isinstance(value, Dataset)]
    return None


def _few(inner: Any) -> bool:
    return type(inner) is dict and len(inner) <= 8


def as_json(site: Optional[Site]) -> Optional[Dict[str, Any]]:
    return None if site is None else {"file": site.file, "line": site.line}
