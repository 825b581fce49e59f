"""What knobs have in common that put something in the place of the loader's dataset that holds its samples in memory.

A window can't wait until all samples are there. It prepares some of them, and copies them until they take as much
memory as a processor's cache can't hold: all of them would not lie in the cache either. Then every index stands for one
of these.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, List, Optional, Tuple

from ..loop.own_dataset import own_dataset
from . import GuestContext, Knob, Refused
from ._around import layers
from ._memory import host_free

MEMORY_PART = 0.5
"""What holds all samples may take this share of the memory that is free."""


class InMemory(Knob):
    layer = "loader"

    @classmethod
    def stand_in(cls) -> Any:
        """What stands for the dataset that was looked at; None if it can't be made, and then the window says so."""
        raise NotImplementedError

    @classmethod
    def stands_in(cls, dataset: Any) -> bool:
        """Whether a dataset is what `stand_in` returns."""
        raise NotImplementedError

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        instead = cls.stand_in() if value else None
        if instead is not None:
            loader.__dict__["dataset"] = instead

    def apply(self, value: Any, context: GuestContext) -> None:
        if value and context.made_anew:
            raise Refused("the script makes a new loader for every epoch, and would prepare all samples each time")

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        # `batched_transforms` may be on as well.
        return None if loader is None else any(map(self.stands_in, layers(own_dataset(loader)))) == bool(value)


def made_once(known: List[Tuple[Any, Any]], dataset: Any, make: Callable[[], Any]) -> Any:
    """What stands for a dataset: the one in `known`, which holds it with a weak reference to its dataset, or a new one.
    None if making it fails."""
    for reference, made in known:
        if reference() is dataset:
            return made
    try:
        made = make()
    except Exception:  # The window says that it took no effect.
        return None
    known[:] = [(weakref.ref(dataset), made)]
    return made


def too_large(size: float, what: str) -> str:
    """Why this many bytes of every process can't be kept, as the end of a sentence; "" if they can."""
    size *= _processes_here()
    free = host_free()
    if free is None or size <= MEMORY_PART * free:
        return ""
    return f"all {what} together would take about {size / (1 << 30):.1f} GiB, and {free / (1 << 30):.1f} GiB are free"


def _processes_here() -> int:
    """How many processes of this training hold samples on this machine."""
    try:
        return max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    except ValueError:
        return 1
