"""`prefetch_factor`: batches that each worker prepares ahead. Seen on the live iterator."""

from __future__ import annotations

from typing import Any, Optional

from . import House, Knob


class PrefetchFactor(Knob):
    name = "prefetch_factor"
    layer = "loader"
    argument = True

    def effect(self, value: Any, house: House) -> Optional[bool]:
        return bool(house.feed.workers > 0 and house.feed.depth == value * house.feed.workers)


KNOB = PrefetchFactor
