"""A process id in; out: a process that gets a core as soon as it wakes, as far as this system lets us. The edge.

py-spy wakes by the clock, and often on the core of the process that it looks at. Linux lets that one go on for some
milliseconds (since 6.6, EEVDF), so work in short bursts between waits is over before it is seen: of bursts of 1.7 ms
every 19 ms a third was. Who asks for short slices goes first (since 6.12), and so does who is less nice, where that is
permitted; then four fifths are seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
import sys

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""Number of the system call, by machine; Python and libc have no function of it."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr` as it was first (48 bytes): size, policy, flags, nice, priority, runtime, deadline, period."""
SLICE_NANOSECONDS = 100_000
"""The shortest that Linux takes."""
NICE = -15


def make_prompt(pid: int) -> bool:
    """Ask for short slices for `pid` and the threads that it will start. False where the system can't be asked."""
    if sys.platform != "linux" or platform.machine() not in _SCHED_SETATTR:
        return False
    with contextlib.suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        # One who may not be less nice than others is prompt all the same.
        return _asked(pid, min(nice, NICE)) or _asked(pid, nice)
    return False


def _asked(pid: int, nice: int) -> bool:
    packed = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, SLICE_NANOSECONDS, 0, 0)
    attributes = ctypes.create_string_buffer(packed, len(packed))
    number = _SCHED_SETATTR[platform.machine()]
    done: int = ctypes.CDLL(None, use_errno=True).syscall(number, pid, attributes, 0)
    if done and ctypes.get_errno() not in (errno.EPERM, errno.EACCES):
        raise OSError(ctypes.get_errno(), "sched_setattr")
    return done == 0
