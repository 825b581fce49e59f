"""`persistent_workers`: workers stay alive between epochs. The effect is checked on the live iterator."""

from __future__ import annotations

from typing import Any, Optional

from . import GuestContext, Knob


class PersistentWorkers(Knob):
    name = "persistent_workers"
    layer = "loader"
    argument = True

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return bool(context.feed.persistent == bool(value))


KNOB = PersistentWorkers
