"""`num_workers`: how many processes load. Seen by the processes that live."""

from __future__ import annotations

from typing import Any, Optional

from . import House, Knob


class NumWorkers(Knob):
    name = "num_workers"
    layer = "loader"
    argument = True

    def effect(self, value: Any, house: House) -> Optional[bool]:
        return self.effect_on_loading(value, house.feed)

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        return bool(feed.live_workers() == value)


KNOB = NumWorkers
