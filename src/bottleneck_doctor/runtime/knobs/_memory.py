"""How much memory is left, for knobs under which a process may keep more of it.

Doctor must never be the reason that the user's training is killed: a knob that sees memory run short gives up, and its
window fails.
"""

from __future__ import annotations

import os
from typing import Optional

import torch

from ..process.originals import now, open_file

LOOKS_EVERY = 0.05
"""Seconds between two readings: one takes some microseconds, and a step may be as short."""
HOST_PART = 0.5
"""The process may take this share of the memory that was free when the window began."""
HOST_LEAST = 32 << 20
"""Bytes that it may take in any case, because so much comes and goes."""
DEVICE_PART = 0.9
"""The allocator may hold this share of a device's memory, unless it held more before."""
_GIBIBYTE = 1 << 30
_UNLIMITED = 1 << 60
"""A control group's limit that means no limit."""


class MemoryLimit:
    """The memory of one window, on the host and on `device` (as torch writes it, `cuda:0`)."""

    def __init__(self, device: str) -> None:
        self._device = device if device.startswith("cuda") and torch.cuda.is_available() else ""
        self._free = host_free()
        self._held = resident()
        self._reserved = self._now_reserved()
        self._look_at = 0.0

    def short(self) -> str:
        """Why no more memory may be kept, as the reason that a window failed; "" while there is enough."""
        if now() < self._look_at:
            return ""
        self._look_at = now() + LOOKS_EVERY
        held = resident()
        if self._free is not None and self._held is not None and held is not None:
            grown = held - self._held
            if grown > max(HOST_LEAST, HOST_PART * self._free):
                return (
                    f"the memory of the process grew by {grown / _GIBIBYTE:.1f} GiB, of "
                    f"{self._free / _GIBIBYTE:.1f} GiB that were free, so the window was given up"
                )
        reserved = self._now_reserved()
        if reserved > self._reserved:
            total = torch.cuda.get_device_properties(self._device).total_memory
            if reserved > DEVICE_PART * total:
                return (
                    f"torch held {reserved / _GIBIBYTE:.1f} GiB of the {total / _GIBIBYTE:.1f} GiB on {self._device}, "
                    "so the window was given up"
                )
        return ""

    def _now_reserved(self) -> int:
        return int(torch.cuda.memory_reserved(self._device)) if self._device else 0


def resident() -> Optional[int]:
    """Bytes of memory that this process holds; None if unknown."""
    try:
        with open_file("/proc/self/statm", encoding="ascii") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def host_free() -> Optional[int]:
    """Bytes that this process may still take, of the machine and of its control groups; None if unknown."""
    free = _available()
    try:
        with open_file("/proc/self/cgroup", encoding="utf-8") as handle:
            groups = [line.strip().split(":", 2) for line in handle]
    except OSError:
        return free
    for _, kinds, path in (group for group in groups if len(group) == 3):
        if not kinds:
            left = _left("/sys/fs/cgroup", path, "memory.max", "memory.current")
        elif "memory" in kinds.split(","):
            left = _left("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        if left is not None:
            free = left if free is None else min(free, left)
    return free


def _available() -> Optional[int]:
    try:
        with open_file("/proc/meminfo", encoding="ascii") as handle:
            for line in handle:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _left(root: str, path: str, limit_file: str, used_file: str) -> Optional[int]:
    """Bytes that a group and its parents leave. In a container the group's own path may not exist, but its root
    does."""
    least: Optional[int] = None
    parts = [part for part in path.split("/") if part and part != ".."]
    for count in range(len(parts), -1, -1):
        folder = os.path.join(root, *parts[:count])
        limit, used = _number(os.path.join(folder, limit_file)), _number(os.path.join(folder, used_file))
        if limit is not None and used is not None and limit < _UNLIMITED:
            left = max(0, limit - used + _cached(os.path.join(folder, "memory.stat")))
            least = left if least is None else min(least, left)
    return least


def _number(path: str) -> Optional[int]:
    try:
        with open_file(path, encoding="ascii") as handle:
            return int(handle.read())
    except (OSError, ValueError):  # `max` is no limit.
        return None


def _cached(path: str) -> int:
    """Bytes of files that a group has in the page cache, which the kernel frees when it needs them."""
    names = ("inactive_file", "active_file", "total_inactive_file", "total_active_file")
    try:
        with open_file(path, encoding="ascii") as handle:
            found = dict(line.split() for line in handle)
        # The first version of control groups counts those inside of a group apart from its own.
        pairs = [int(found[name]) for name in names if name in found]
        return sum(pairs[-2:])
    except (OSError, ValueError):
        return 0
