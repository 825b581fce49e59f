"""What torch has compiled in this process."""

from __future__ import annotations

import sys


def compiled_graphs() -> int:
    """How many graphs torch has compiled in this process so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["stats"]["unique_graphs"])
