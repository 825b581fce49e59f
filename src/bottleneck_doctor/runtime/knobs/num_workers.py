"""`num_workers`: the number of loader workers. The effect is checked by the worker processes that are alive."""

from __future__ import annotations

from typing import Any, Optional

from . import Knob


class NumWorkers(Knob):
    name = "num_workers"
    layer = "loader"
    argument = True

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        return bool(feed.live_workers() == value)


KNOB = NumWorkers
