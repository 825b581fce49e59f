"""`multiprocessing_context`: how the workers of a window are started (`fork`). The effect is checked on the live
workers.

A worker that is spawned, or forked by multiprocessing's server, imports the program before it makes its first batch. A
forked one is a copy of the process as it is.
"""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any, Optional

from ..loop.steps import Steps
from . import Knob

NAME = "multiprocessing_context"


class MultiprocessingContext(Knob):
    name = NAME
    layer = "loader"
    argument = True

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        if loader is None:
            return None
        forks = sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()
        return "" if forks else "forking a process is safe on Linux only"

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        workers = getattr(feed.iterator, "_workers", ())
        return bool(workers) and all(getattr(each, "_start_method", None) == value for each in workers)


KNOB = MultiprocessingContext
