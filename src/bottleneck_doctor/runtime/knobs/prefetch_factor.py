"""`prefetch_factor`: the number of batches that each worker prepares ahead. The effect is checked on the live
iterator."""

from __future__ import annotations

from typing import Any, Optional

from . import GuestContext, Knob


class PrefetchFactor(Knob):
    name = "prefetch_factor"
    layer = "loader"
    argument = True

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return bool(context.feed.workers > 0 and context.feed.depth == value * context.feed.workers)


KNOB = PrefetchFactor
