"""How much memory a training holds, by /proc: the peak of this process, and what its workers have for themselves.

Both are read between windows, so that nothing of it is timed. Nothing here raises: what the system does not tell is
None.
"""

from __future__ import annotations

import re
from typing import List, Optional, Sequence

from .originals import now, open_file

LONGEST = 0.05
"""Seconds after which no further worker is read. For each, the kernel walks all of its memory, 10 ms for each GB."""
_PRIVATE = re.compile(rb"^Private_\w+:\s*(\d+) kB$", re.MULTILINE)
_PEAK = re.compile(rb"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def peak_bytes(proc: str = "/proc") -> Optional[int]:
    """The most memory that this process has held so far."""
    try:
        found = _PEAK.search(_text(proc + "/self/status"))
    except OSError:
        return None
    return None if found is None else 1024 * int(found[1])


def own_bytes(workers: Sequence[int], proc: str = "/proc") -> Optional[int]:
    """Bytes that these processes share with no other; None if one of them has ended.

    Workers are alike, so those for which there is no time count as the mean of the others.
    """
    begun = now()
    read: List[int] = []
    for worker in workers:
        if read and now() - begun > LONGEST:
            break
        try:
            text = _text("%s/%d/smaps_rollup" % (proc, worker))
        except OSError:
            return None
        read.append(1024 * sum(map(int, _PRIVATE.findall(text))))
    return sum(read) * len(workers) // len(read) if read else 0


def _text(path: str) -> bytes:
    with open_file(path, "rb", buffering=0) as file:
        return bytes(file.read())
