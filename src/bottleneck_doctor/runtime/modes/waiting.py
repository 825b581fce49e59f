"""How long this thread was ready to run while others had the cores, to tell that from waiting on purpose.

Linux counts it for each thread in /proc/thread-self/schedstat: seconds on a core, seconds of waiting for one, and
number of time slices (https://docs.kernel.org/scheduler/sched-stats.html). Other systems don't report it.
"""

from __future__ import annotations

from typing import Optional

from ..process.originals import open_file


def delayed() -> Optional[float]:
    """Seconds that the calling thread has waited for a core so far; None if the system does not report it."""
    try:
        # By our own reference: what opens files is watched while batches are made.
        with open_file("/proc/thread-self/schedstat", "rb", buffering=0) as handle:
            return int(handle.read(100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
