"""The output of the examined program, in a file that keeps only its beginning and its end.

The program writes straight into the file, because with a pipe it would have to wait for doctor. From time to time the
middle is given back to the disk, which leaves a hole in the file. Positions in the file stay the same, so writers and
readers don't notice.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FIRST = 64 << 10
LAST = 4 << 20
"""Bytes at either end that are never given back."""
_PORTION = 4 << 20
"""Bytes to give back at least in one call to the kernel."""
_MOST_BEHIND = 64 << 20
"""If more bytes than this wait to be shown, because the terminal is slower than the program, some are left out."""
_BLOCK = 4096
_TICK, _SELDOM = 0.1, 0.25
"""Seconds between two looks at the file, if it is shown, and if it is only kept short."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
"""From linux/falloc.h."""


@dataclass(frozen=True)
class Words:
    """The beginning and the end of what was written. `left_out`: how many bytes lie between them. If `last` holds
    everything, `first` is empty."""

    first: bytes
    left_out: int
    last: bytes


class OutputLog:
    """One session's log, at `path`. Opening it for writing creates it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end_of_hole = FIRST

    def size(self) -> int:
        """How many bytes were written. Raises `OSError`."""
        return os.stat(self.path).st_size

    def trim(self, read: int | None = None) -> None:
        """Give the middle back to the disk, but nothing from position `read` on, which is still to be read.

        If the file system does not support holes, the file stays as it is.
        """
        with contextlib.suppress(OSError):
            end = self.size() - LAST
            end = (end if read is None else min(end, read)) // _BLOCK * _BLOCK
            if end - self._end_of_hole >= _PORTION:
                _punch(self.path, self._end_of_hole, end - self._end_of_hole)
                self._end_of_hole = end

    def watch(self, over: Callable[[], bool], show: Callable[[bytes], None] | None = None) -> None:
        """Keep the log short until `over`, and `show` what is written, in whole lines as long as more is coming."""
        if show is None:
            while not over():
                self.trim()
                time.sleep(_SELDOM)
            return
        held = b""
        with contextlib.suppress(OSError), open(self.path, "rb") as log:
            while not over():
                behind = self.size() - log.tell()
                if behind > _MOST_BEHIND:
                    log.seek(behind - LAST, os.SEEK_CUR)
                    log.readline(LAST)
                    held = f"[... {megabytes(behind - LAST)} left out ...]\n".encode()
                block = log.read(65536)
                held += block
                end = max(held.rfind(b"\n"), held.rfind(b"\r")) + 1 if block else len(held)
                told, held = held[:end], held[end:]
                if told:
                    show(told)
                self.trim(log.tell())
                if not block:
                    time.sleep(_TICK)

    def words(self, first: int, last: int) -> Words:
        """The beginning, in whole lines of up to `first` bytes (at most `FIRST`), and the last `last` bytes (at most
        `LAST`). Raises `OSError`."""
        with open(self.path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - last))
            end = log.read()
            if size <= first + last:
                log.seek(0)
                return Words(b"", 0, log.read())
            log.seek(0)
            beginning = log.read(first)
        beginning = beginning[: beginning.rfind(b"\n") + 1]
        return Words(beginning, size - len(beginning) - len(end), end)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _punch(path: Path, start: int, length: int) -> None:
    """Make a hole in the file. Raises `OSError` if that is not possible."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    fallocate = getattr(libc, "fallocate64", None) or libc.fallocate
    handle = os.open(path, os.O_WRONLY)
    try:
        if fallocate(handle, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(handle)
