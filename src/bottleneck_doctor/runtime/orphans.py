"""Has the kernel end the workers that the guest forks should this process be killed. Linux only.

torch's workers look only every five seconds whether their parent is alive, and nothing else could end them once the
supervisor and this process are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any, Callable, Iterator, Optional

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h: the signal that a process gets when the thread that forked it ends."""

_forking = False
_prctl: Optional[Callable[..., Any]] = None


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Processes that are forked meanwhile end with this one. Only from the main thread: others may end sooner."""
    global _forking
    _forking = _ready() and threading.current_thread() is threading.main_thread()
    try:
        yield
    finally:
        _forking = False


def _ready() -> bool:
    """Look up in time what a forked process only has to call."""
    global _prctl
    if _prctl is None and sys.platform == "linux":
        try:
            import ctypes

            _prctl = ctypes.CDLL(None).prctl
        except (ImportError, OSError, AttributeError):
            return False
        os.register_at_fork(after_in_child=_in_child)
    return _prctl is not None


def _in_child() -> None:
    global _forking
    if _forking and _prctl is not None:
        _forking = False
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
