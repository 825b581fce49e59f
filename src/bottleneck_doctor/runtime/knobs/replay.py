"""`replay`: a few real batches served over and over, the ceiling that no loader can pass. Seen on the feed."""

from __future__ import annotations

from typing import Any, Optional

from . import GuestContext, Knob


class Replay(Knob):
    name = "replay"
    layer = "loader"
    keeps_batches = True

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return bool(getattr(context.feed, "replays", False))


KNOB = Replay
