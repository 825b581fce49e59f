"""Lets the supervisor's profiler read this process if the kernel requires permission for that (Yama, ptrace scope 1).

Under Yama a process can be traced by its ancestors and by one process that it names, with that process's children. The
supervisor is an ancestor, but its profiler is a child of the supervisor, so this process names the supervisor. The
permission is not inherited, so forked loader workers give it again.
"""

from __future__ import annotations

import functools
import json
import os
import sys

from ..wire.channel import invited_from_here

_PR_SET_PTRACER = 0x59616D61
"""From linux/prctl.h; the letters of "Yama"."""


def allow_supervisor(invitation: str) -> None:
    """Let the supervisor that sent `invitation`, and its children, trace this process and those that it forks.

    Where there is no Yama nothing happens. Never raises.
    """
    if sys.platform != "linux":
        return
    try:
        if not invited_from_here(invitation):
            return
        import ctypes

        supervisor = ctypes.c_ulong(json.loads(invitation)["supervisor"])
        rest = (ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
        allow = functools.partial(ctypes.CDLL(None).prctl, ctypes.c_int(_PR_SET_PTRACER), supervisor, *rest)
    except (ImportError, OSError, AttributeError, ValueError, KeyError, TypeError):
        return
    allow()
    os.register_at_fork(after_in_child=allow)
