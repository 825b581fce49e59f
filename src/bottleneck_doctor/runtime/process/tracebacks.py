"""Removes the guest's frames from the tracebacks that the user reads."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Callable, Optional

from .user_code import OWN_FOLDER

on_crash: Optional[Callable[[str], None]] = None
"""Called with the traceback of the user's exception that ends the process, before it is printed."""


def hide_own_frames() -> None:
    """Make Python print the exception that ends the process without them."""
    previous = sys.excepthook

    def excepthook(kind: type, error: BaseException, trace: Optional[TracebackType]) -> None:
        seen = set()
        chained: Optional[BaseException] = error
        while chained is not None and id(chained) not in seen:
            seen.add(id(chained))
            chained.__traceback__ = without_own_frames(chained.__traceback__)
            chained = chained.__cause__ or chained.__context__
        if on_crash is not None:
            import traceback

            on_crash("".join(traceback.format_exception(kind, error, error.__traceback__)))
        previous(kind, error, error.__traceback__)

    sys.excepthook = excepthook


def without_own_frames(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """The same traceback with the guest's frames unlinked."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
            kept.append(trace)
        trace = trace.tb_next
    for first, second in zip(kept, kept[1:]):
        first.tb_next = second
    if kept:
        kept[-1].tb_next = None
    return kept[0] if kept else None
