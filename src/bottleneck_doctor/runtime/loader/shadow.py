"""Copies of the user's loader with some values changed, from which the guest builds its iterators."""

from __future__ import annotations

import copy
import functools
import multiprocessing
from typing import Any, Dict, Optional

import torch

from ..knobs import arguments

IN_THIS_PROCESS = {"num_workers": 0}
"""The setting under which the main process makes the batches."""
DEFAULT_PREFETCH = 2
_CONTEXT = "_DataLoader__multiprocessing_context"
"""Where torch keeps it. The attribute of the argument's name is a property that reads this one."""


def shadow_of(loader: Any, setting: Dict[str, Any], *, lasting: bool = True) -> Any:
    """A copy of a loader under another setting. `lasting`: see `Feed`."""
    shadow = copy.copy(loader)
    answers = _answering(type(shadow))
    if answers is not None:
        object.__setattr__(shadow, "__class__", answers)
    values = shadow.__dict__
    values.update(arguments(setting))
    method = values.pop("multiprocessing_context", None)
    if method is not None:
        values[_CONTEXT] = multiprocessing.get_context(method)
    values["_iterator"] = None
    if "num_workers" in setting and "worker_init_fn" in values:
        values["worker_init_fn"] = _told_the_number(values["worker_init_fn"], values["num_workers"])
    if values["num_workers"] == 0:
        values["prefetch_factor"] = None
        values["persistent_workers"] = False
        values["timeout"] = 0
        values[_CONTEXT] = None
    elif getattr(shadow, "prefetch_factor", None) is None:
        values["prefetch_factor"] = DEFAULT_PREFETCH
    if not lasting:
        values["persistent_workers"] = False
    return shadow


def _told_the_number(start: Any, workers: int) -> Any:
    """What workers start with, where it was told how many there are, as libraries do that draw their seeds: told again.
    mmengine tells it None where the user asks for no workers, and with that, each worker would fail."""
    if not isinstance(start, functools.partial) or "num_workers" not in start.keywords:
        return start
    return functools.partial(start, num_workers=workers)


_answer: Dict[type, type] = {}
"""Classes of loaders by the one whose `dataset` they answer as torch's iterators are to have it."""


def _answering(kind: type) -> Optional[type]:
    """The class of a copy where loaders of this kind may answer with another dataset than their own: see `own_dataset`.
    None where `kind` will do."""
    plain: Any = kind.__getattribute__
    if plain is object.__getattribute__:
        return None
    if kind not in _answer:

        def answer(self: Any, name: str) -> Any:
            own = plain(self, "__dict__")
            return own[name] if name == "dataset" and name in own else plain(self, name)

        _answer[kind] = type(kind.__name__, (kind,), {"__getattribute__": answer, "__module__": kind.__module__})
    return _answer[kind]


_generators: Dict[str, torch.Generator] = {}


def draw_apart(shadow: Any) -> None:
    """Make this copy of a loader draw the seeds of its workers from a separate generator.

    torch draws one for every iterator. Windows make more iterators than the user's loop would, and the random numbers
    of the model and the sampler must not depend on how many there were.
    """
    try:
        given = shadow.generator
        device = torch.empty(()).device if given is None else given.device
        mine = _generators.get(str(device))
        if mine is None:
            mine = _generators[str(device)] = torch.Generator(device)
            mine.manual_seed(torch.initial_seed())
    except (RuntimeError, AttributeError):  # A device without generators of its own.
        return
    shadow.__dict__["generator"] = mine
