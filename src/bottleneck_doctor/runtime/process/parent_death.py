"""Makes the kernel end the workers that the guest starts if this process is killed. Linux only.

torch's workers check only every five seconds whether their parent is alive, and nothing else could end them after the
supervisor and this process are killed. Forked workers ask the kernel for it right after the fork. Workers that start as
new processes (spawned ones, and a forkserver with all its forks) find a variable in their environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any, Callable, Iterator, Optional

VARIABLE = "BOTTLENECK_DOCTOR_ENDS_WITH"
"""The variable that names the process that starts workers, set while it does."""
_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h: the signal that a process gets when the thread that forked it ends."""

_forking = False
_registered = False
_prctl: Optional[Callable[..., Any]] = None


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Processes that are started in this context end with this one. Other threads than the main one are left alone,
    because a worker would end with the thread that forked it, which may be sooner."""
    global _forking
    _forking = _ready() and threading.current_thread() is threading.main_thread()
    if _forking:
        os.environ[VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        if _forking:
            os.environ.pop(VARIABLE, None)
        _forking = False


def end_with_parent() -> None:
    """Call at the start of an interpreter, which may be a worker or a forkserver that was started inside `ended`."""
    parent = os.environ.pop(VARIABLE, "")
    command = " ".join(sys.orig_argv)
    # Not Python's resource tracker: it clears up once all others are gone.
    if parent != str(os.getppid()) or "multiprocessing.resource_tracker" in command:
        return
    end_with(int(parent))
    if "multiprocessing.forkserver" in command:
        os.register_at_fork(after_in_child=_tell_kernel)


def end_with(parent: int) -> None:
    """Make the kernel end this process if its parent, which was `parent` a moment ago, is killed."""
    if not _load():
        return
    _tell_kernel()
    if os.getppid() != parent:  # It died in between.
        os._exit(1)


def _load() -> bool:
    global _prctl
    if _prctl is None and sys.platform == "linux":
        try:
            import ctypes

            _prctl = ctypes.CDLL(None).prctl
        except (ImportError, OSError, AttributeError):
            return False
    return _prctl is not None


def _ready() -> bool:
    """Look up the function beforehand, so that a forked process only has to call it."""
    global _registered
    if _load() and not _registered:
        _registered = True
        os.register_at_fork(after_in_child=_in_child)
    return _registered


def _in_child() -> None:
    global _forking
    if _forking:
        _forking = False
        os.environ.pop(VARIABLE, None)
        _tell_kernel()


def _tell_kernel() -> None:
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
