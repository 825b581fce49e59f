"""Methods of the user's model that a loop calls in place of the model itself, as in `model.loss(batch)` or
`model.forward(batch)`.

No hook on modules sees such a call begin or end. It is known by the lines that call the modules inside: they lie in
methods of a class of modules that the user wrote.
"""

from __future__ import annotations

import dis
import os
import types
from typing import Iterator, List, Optional, Sequence, Set, Tuple

import torch

from ..process.user_code import is_users_file
from ..process.uses import with_inner
from ..wire.messages import Site
from .steps import Steps

_OF_TRAINERS = "training_step"
"""A class with such a method holds a model and trains it: its methods are the user's whole step."""


def model_methods(steps: Steps) -> List[Tuple[type, str]]:
    """The classes and names of plain functions, those of each class in whose methods the modules that train are called.

    Empty where the model itself is called. A class that also calls the backward pass is none of these.
    """
    return [
        (kind, name)
        for kind in _classes(steps)
        for name, _ in _functions(kind)
        if not name.startswith("__") and _is_for_users(name)
    ]


def called_methods(steps: Steps) -> Tuple[List[List[str]], Optional[Site]]:
    """File and name of each of these functions, and the user's line that calls one; None if there is none."""
    functions = [getattr(kind, name).__code__ for kind, name in model_methods(steps)]
    sites = list(steps.callers.forward_sites)
    while len(sites) > 1 and _holds(functions, sites[:1]):
        del sites[0]
    if not functions or sites == steps.callers.forward_sites:
        return [], None
    return [[os.path.abspath(each.co_filename), each.co_name] for each in functions], sites[0]


def _classes(steps: Steps) -> List[type]:
    sites = steps.callers.forward_sites
    backward = [] if steps.backward_site is None else [steps.backward_site]
    found = []
    for kind in _users_modules() if sites else ():
        codes = [each.__code__ for _, each in _functions(kind)]
        if _holds(codes, sites) and not _holds(codes, backward) and not hasattr(kind, _OF_TRAINERS):
            found.append(kind)
    return found


def _functions(kind: type) -> List[Tuple[str, types.FunctionType]]:
    return [(name, value) for name, value in list(vars(kind).items()) if isinstance(value, types.FunctionType)]


def _is_for_users(name: str) -> bool:
    """Whether a method is none that torch calls by itself, such as `train`."""
    return name == "forward" or not hasattr(torch.nn.Module, name)


def _users_modules() -> Iterator[type]:
    seen: Set[type] = set()
    waiting: List[type] = [torch.nn.Module]
    while waiting:
        below: List[type] = type.__subclasses__(waiting.pop())
        for kind in below:
            if kind not in seen:
                seen.add(kind)
                waiting.append(kind)
                if any(is_users_file(each.__code__.co_filename) for _, each in _functions(kind)):
                    yield kind


def _holds(codes: Sequence[types.CodeType], sites: Sequence[Site]) -> bool:
    """Whether one of these places lies in one of these functions."""
    for code in codes:
        file = os.path.abspath(code.co_filename)
        asked = {site.line for site in sites if site.file == file}
        if asked and any(line in asked for each in with_inner(code) for _, line in dis.findlinestarts(each)):
            return True
    return False
