"""`replay`: a few real batches served over and over, the ceiling that no loader can pass. Seen on the feed."""

from __future__ import annotations

from typing import Any, Optional

from . import House, Knob


class Replay(Knob):
    name = "replay"
    layer = "loader"
    keeps_batches = True

    def effect(self, value: Any, house: House) -> Optional[bool]:
        return bool(getattr(house.feed, "replays", False))


KNOB = Replay
