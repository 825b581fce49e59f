"""Where the optimizers of a loop are made: the line of the user's, whatever it calls the class. Often a variable holds
it, or a library makes the optimizer of a file of settings."""

from __future__ import annotations

import inspect
import os
import re
import weakref
from dataclasses import asdict
from types import FrameType
from typing import Any, Callable, Dict, List, MutableMapping, Optional, Tuple

import torch

from ..loop.known_values import own_attributes
from ..loop.signatures import all_given, by_library, library_frames, owner_of, taken_by
from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.patches import Patches
from ..process.user_code import OWN_FOLDER, is_users_file
from ..wire.messages import Taker

_NAME = "made_optimizers"
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__))
_HOLDS_THEM = re.compile(r"optim(izer)?_(kwargs|args|params|options|config)")
"""What a dict of an optimizer's arguments is called as an argument, as `optimizer_params` of pytorch-tabnet."""
_PREFIXES = {"skorch": "optimizer__"}
"""Libraries whose classes take an optimizer's arguments behind a prefix."""
_DICTS = {"darts": "optimizer_kwargs"}
"""Libraries whose classes hand a dict of them on to a module of their own."""
_Place = Tuple[str, int, str, List[Taker]]
"""A file of the user's, a line of it, the library that the line calls, "" where it calls the class itself, and what
takes the optimizer's arguments there."""


def watch(steps: Steps) -> None:
    """Note from now on where optimizers are made, until `told` is asked. Several knobs may watch."""
    if _NAME in steps.noted:
        return
    places: MutableMapping[Any, _Place] = weakref.WeakKeyDictionary()
    patches = Patches()
    steps.noted[_NAME] = places, patches

    def noting(original: Any) -> Any:
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            try:
                place = _place(get_frame(1), optimizer)
                if place is not None:
                    places[optimizer] = place
            except Exception:
                pass  # An optimizer that can't be a key, or a stack unlike any known.

        return __init__

    patches.put(torch.optim.Optimizer, "__init__", noting)


def _none(optimizer: Any) -> str:
    return ""


def told(steps: Steps, refusal: Callable[[Any], str] = _none) -> Optional[Dict[str, Any]]:
    """What a knob of optimizers tells, of those for which it has no `refusal`: the class of another one may not know
    what the edit gives it. `calls`: the class of each optimizer of the loop, with the file and the line of the call
    that makes it. `through`: the same of those that a library makes, with its name and the line that calls it.
    `takers`: what takes their arguments there. None where nothing was seen."""
    places, patches = steps.noted.get(_NAME) or ({}, Patches())
    patches.take_off()
    seen: Dict[str, List[Any]] = {"calls": [], "through": []}
    for optimizer in steps.optimizers:
        place: Optional[_Place] = places.get(optimizer)
        if place is None or refusal(optimizer):
            continue
        file, line, library, takers = place
        kept = seen["through" if library else "calls"]
        entry = [library or type(optimizer).__name__, os.path.abspath(file), line]
        if entry not in kept:
            kept.append(entry)
            if takers:
                seen.setdefault("takers", []).extend(asdict(each) for each in takers)
    return seen if any(seen.values()) else None


def _takers(frame: Optional[FrameType], optimizer: Any) -> List[Taker]:
    """The classes of objects that lead to an optimizer and take its arguments. A dict of them has to be a part of what
    the optimizer was given: some libraries take no notice of theirs."""
    names = list(inspect.signature(type(optimizer).__init__).parameters)[2:]
    same = {name: name for name in names}
    made: Dict[str, Taker] = {}
    for each in library_frames(frame):
        owner = owner_of(each)
        kind = type(owner)
        if owner is None or kind.__name__ in made:
            continue
        prefix, handed, taken = by_library(kind, _PREFIXES), by_library(kind, _DICTS), taken_by(kind)
        if prefix is not None:
            made[kind.__name__] = Taker(kind.__name__, {name: f"{prefix}{name}" for name in names})
        elif handed is not None and taken.rests:
            made[kind.__name__] = Taker(kind.__name__, same, within=handed)
        else:
            own = own_attributes(owner) or {}
            given = {name: own.get(name) for name in taken.places if _HOLDS_THEM.fullmatch(name)}
            dicts = [(name, held) for name, held in given.items() if held and type(held) is dict]
            if dicts and all_given(dicts[0][1], optimizer.defaults):
                made[kind.__name__] = Taker(kind.__name__, same, within=dicts[0][0], holds=dicts[0][1])
    return list(made.values())


def _place(frame: Optional[FrameType], optimizer: Any) -> Optional[_Place]:
    """Where the user's code calls what makes an optimizer, which `frame` belongs to."""
    library, inner = "", frame
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file):
            return file, frame.f_lineno, library, _takers(inner, optimizer) if library else []
        # The first library behind torch and Python's own files is the one that makes it.
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not library and "-packages" + os.sep in file and not file.startswith((_TORCH_FOLDER, OWN_FOLDER)):
            library = module
        frame = frame.f_back
    return None
