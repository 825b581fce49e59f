"""Private copies of functions that the guest relies on, taken before any of the user's code runs.

User code that patches `time.perf_counter` or `os._exit` must not be able to falsify a measurement.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import Any, Callable, Optional

now = time.perf_counter
"""Seconds on a clock shared by every process of the machine (CLOCK_MONOTONIC on Linux)."""

processor_time = time.process_time
"""Seconds that this process has computed, all of its threads together."""

thread_time = time.thread_time
"""Seconds that the calling thread has computed."""

read_clock = getattr(time, "clock_gettime", None)
"""Any clock of the system by its number; None where the system has none."""

resources: Optional[Callable[[], Any]] = None
"""What this process has used, as getrusage(2) has it; None on Windows."""
try:
    import resource

    resources = partial(resource.getrusage, resource.RUSAGE_SELF)
except ImportError:
    pass

wall_clock = time.time
"""Unix time, as in the times of files."""

open_file = open
exit_now = os._exit
getpid = os.getpid
get_frame = sys._getframe
sleep = time.sleep
process_started = now()
"""When this process began to run Python code, near enough."""
