"""Who has set a value of torch's that applies to the whole process. If a library does so when training begins, as that
of YOLO does, what the user writes above is gone by then."""

from __future__ import annotations

import functools
from types import FrameType
from typing import Any, Dict, Optional

import torch

from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.user_code import OWN_FOLDER, is_users_file


def watch_function(steps: Steps, name: str, function: Any) -> None:
    """Note from now on who calls a function of torch's, under the name of a knob."""

    @functools.wraps(function)
    def noting(*given: Any, **named: Any) -> Any:
        _note(steps, name, get_frame(1))
        return function(*given, **named)

    noting.__module__ = torch.__name__  # Where it is found if it is pickled.
    setattr(torch, function.__name__, noting)


def watch_attribute(steps: Steps, name: str, module: Any, attribute: str) -> None:
    """The same for what is assigned to an attribute of a module of torch's. May raise, where this torch has it in
    another way."""
    held = vars(type(module))[attribute]
    setter = held.setter

    def noting(value: Any) -> None:
        _note(steps, name, get_frame(2))  # Between the two is `__set__`.
        setter(value)

    held.setter = noting


def told(steps: Steps, name: str) -> Optional[Dict[str, Any]]:
    """The place in a library that set it last: `file` and `line`. None if the user did, or nobody."""
    return _set_last(steps, name, own=False)


def written(steps: Steps, name: str) -> Optional[Dict[str, Any]]:
    """The same of the user's own code; None if a library set it last, or nobody."""
    return _set_last(steps, name, own=True)


def _set_last(steps: Steps, name: str, *, own: bool) -> Optional[Dict[str, Any]]:
    place: Optional[Dict[str, Any]] = steps.noted.get(name)
    return place if place is not None and is_users_file(place["file"]) is own else None


def _note(steps: Steps, name: str, frame: FrameType) -> None:
    if not frame.f_code.co_filename.startswith(OWN_FOLDER):
        steps.noted[name] = _place(frame)


def _place(frame: FrameType) -> Optional[Dict[str, Any]]:
    """Where it is called; None if a library does so while it is imported, which is before what a user writes below the
    imports."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    outer: Optional[FrameType] = None if is_users_file(file) else frame
    while outer is not None:
        if outer.f_code.co_filename.startswith("<frozen importlib"):
            return None
        outer = outer.f_back
    return {"file": file, "line": line}
