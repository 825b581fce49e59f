"""`replay`: a few real batches served over and over, which gives the speed that no loader can exceed. The effect is
checked on the feed."""

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
