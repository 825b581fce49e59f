"""The catalogue: one file a fix, found by its place in this folder.

To add a fix, add a file that defines `FIX`; `catalogue` picks it up. Ids are never used again for something else.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from bottleneck_doctor.fixes._fix import Fix, Function, NotApplicable, Offer

RETIRED_IDS: frozenset[str] = frozenset()
"""Ids of fixes that are gone, so that they never come back as something else."""


@lru_cache
def catalogue() -> tuple[Fix, ...]:
    """Every fix, in the order in which they are tried."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    fixes = [importlib.import_module(f"{__name__}.{name}").FIX for name in names]
    return tuple(sorted(fixes, key=lambda fix: (fix.order, fix.id)))


__all__ = ["RETIRED_IDS", "Fix", "Function", "NotApplicable", "Offer", "catalogue"]
