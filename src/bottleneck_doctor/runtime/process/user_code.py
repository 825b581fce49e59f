"""Which code is the user's own, and which of its lines is running."""

from __future__ import annotations

import os
from types import FrameType
from typing import Optional

from ..wire.messages import Site
from .originals import get_frame

_LIBRARY_MARKS = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the guest."""
_STDLIB_FOLDER = os.path.dirname(os.path.abspath(os.__file__))


def is_users_file(name: str) -> bool:
    """Whether a file, as code objects name it, is the user's own, and not doctor's, torch's or another library's."""
    return not (
        name.startswith(OWN_FOLDER)
        or name.startswith("<")
        or any(mark in name for mark in _LIBRARY_MARKS)
        or name.startswith(_STDLIB_FOLDER)
    )


def user_site(depth: int = 1) -> Optional[Site]:
    """The innermost line of the user's own code on the stack."""
    frame: Optional[FrameType] = get_frame(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_file(name):
            return Site(os.path.abspath(name), frame.f_lineno)
        frame = frame.f_back
    return None
