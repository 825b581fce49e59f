"""What torch has compiled in this process."""

from __future__ import annotations

import sys
from typing import Any


def compiled_graphs() -> int:
    """How many graphs torch has compiled in this process so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["stats"]["unique_graphs"])


def is_compiled_in_place(module: Any) -> bool:
    """Whether `Module.compile` compiled this module, so that its calls go past its hooks into a graph."""
    return getattr(module, "_compiled_call_impl", None) is not None
