"""Where the user's own part of something begins: a function, a dataset under wrappers, a transform."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any, Dict, Optional

from ..messages import Site
from ..steps import is_users_file

_WRAPPED = ("dataset", "datasets", "_dataset", "source_datapipe", "_datapipe")
"""Attributes under which wrappers keep the dataset they wrap: torch's, torchvision's, torchdata's."""


def function_site(function: Any) -> Optional[Site]:
    """The first line of a function, method, partial or callable object; None where it is not the user's own."""
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
    if code is None or not is_users_file(code.co_filename):
        return None
    return Site(os.path.abspath(code.co_filename), code.co_firstlineno)


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
    """Where the user's own `__getitems__`, `__getitem__` or `__iter__` begins, under all wrappers."""
    for _ in range(8):
        # A transform that Hugging Face's datasets call for each item is where the user's own work is.
        formatting = getattr(dataset, "_format_kwargs", None)
        if isinstance(formatting, dict) and callable(formatting.get("transform")):
            return function_site(formatting["transform"])
        for name in ("__getitems__", "__getitem__", "__iter__"):
            site = function_site(getattr(type(dataset), name, None))
            if site is not None:
                return site
        inner = next((vars(dataset)[name] for name in _WRAPPED if name in getattr(dataset, "__dict__", {})), None)
        if isinstance(inner, (list, tuple)):
            inner = inner[0] if inner else None
        if inner is None:
            return None
        dataset = inner
    return None


def as_json(site: Optional[Site]) -> Optional[Dict[str, Any]]:
    return None if site is None else {"file": site.file, "line": site.line}
