"""The things that the guest can change, one file each.

A knob has a `name`, `apply(value, house)`, `revert(house)` and `effect(value, house)`: whether the change can be seen
to hold (None: nothing to see yet). Knobs of the loader change nothing themselves, since the feed is built with them;
they only look whether it obeyed.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..pauses import EpochPauses
from ..steps import Steps


class House:
    """What knobs and modes may touch: the loop's device and root modules, the current feed, the last batch served, and
    the pauses between epochs so far. `made_anew`: the script makes its loader anew for every epoch."""

    def __init__(self, steps: Steps, device: str) -> None:
        self.steps = steps
        self.device = device
        self.feed: Any = None
        self.batch: Any = None
        self.pauses = EpochPauses()
        self.made_anew = False


class Knob:
    name = ""

    def apply(self, value: Any, house: House) -> None:
        """Change it. May raise; the window then fails with that reason."""

    def revert(self, house: House) -> None:
        """As the user had it. Must not raise."""

    def before_step(self, house: House) -> None:
        """Called at each batch request (or step) while the knob is applied."""

    def timed_part_begins(self, house: House) -> None:
        """Called when lead-in is over: take away whatever only serves `effect`."""

    def effect(self, value: Any, house: House) -> Optional[bool]:
        return None


def registry() -> Dict[str, Knob]:
    """A fresh knob of every kind, by name."""
    from . import autocast, intra_op_threads, num_workers, persistent_workers, pin_memory, prefetch_factor, replay

    kinds: List[Any] = [
        num_workers.NumWorkers,
        prefetch_factor.PrefetchFactor,
        persistent_workers.PersistentWorkers,
        pin_memory.PinMemory,
        autocast.Autocast,
        intra_op_threads.IntraOpThreads,
        replay.Replay,
    ]
    return {kind.name: kind() for kind in kinds}
