"""Where the optimizers of a loop are made: the line of the user's, whatever it calls the class. Often a variable holds
it, or a library makes the optimizer of a file of settings."""

from __future__ import annotations

import os
import weakref
from types import FrameType
from typing import Any, Dict, List, MutableMapping, Optional, Tuple

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.patches import Patches
from ..process.user_code import OWN_FOLDER, is_users_file

_NAME = "made_optimizers"
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__))
_Place = Tuple[str, int, str]
"""A file of the user's, a line of it, and the library that the line calls; "" where it calls the class itself."""


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
                place = _place(get_frame(1))
                if place is not None:
                    places[optimizer] = place
            except Exception:
                pass  # An optimizer that can't be a key, or a stack unlike any known.

        return __init__

    patches.put(torch.optim.Optimizer, "__init__", noting)


def told(steps: Steps) -> Optional[Dict[str, Any]]:
    """What a knob of optimizers tells. `calls`: the class of each optimizer of the loop, with the file and the line of
    the call that makes it. `through`: the same of those that a library makes, with its name and the line that calls it.
    None where nothing was seen."""
    places, patches = steps.noted.get(_NAME) or ({}, Patches())
    patches.take_off()
    seen: Dict[str, List[List[Any]]] = {"calls": [], "through": []}
    for optimizer in steps.optimizers:
        place: Optional[_Place] = places.get(optimizer)
        if place is None:
            continue
        file, line, library = place
        kept = seen["through" if library else "calls"]
        entry = [library or type(optimizer).__name__, os.path.abspath(file), line]
        if entry not in kept:
            kept.append(entry)
    return seen if any(seen.values()) else None


def _place(frame: Optional[FrameType]) -> Optional[_Place]:
    """Where the user's code calls what makes an optimizer, which `frame` belongs to."""
    library = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file):
            return file, frame.f_lineno, library
        # The first library behind torch and Python's own files is the one that makes it.
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not library and "-packages" + os.sep in file and not file.startswith((_TORCH_FOLDER, OWN_FOLDER)):
            library = module
        frame = frame.f_back
    return None
