"""Makes SIGTERM end a command as Ctrl-C does: with everything cleaned up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on SIGTERM for as long as the context lasts."""
    try:
        before: Any = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # Only the main thread can set signal handlers.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
