"""`num_workers`: how many processes load. Seen by the processes that live."""

from __future__ import annotations

from typing import Any, Optional

from . import House, Knob


class NumWorkers(Knob):
    name = "num_workers"

    def effect(self, value: Any, house: House) -> Optional[bool]:
        return bool(house.feed.live_workers() == value)
