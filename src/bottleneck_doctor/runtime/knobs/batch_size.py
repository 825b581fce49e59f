"""`batch_size`: how many samples a batch has, a multiple of the user's own. The effect is checked on the live iterator.

So many of the user's batches are made one: the sampler says which samples come, in its own order.
"""

from __future__ import annotations

from typing import Any, Optional

from torch.utils.data import BatchSampler, IterableDataset

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from . import Knob
from ._rebatched import Joined

NAME = "batch_size"


class BatchSize(Knob):
    name = NAME
    layer = "loader"
    argument = True

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return None if loader is None else obstacle(loader)

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        batches = loader.batch_sampler  # Of the user's size still.
        if not obstacle(loader) and value % batches.batch_size == 0:
            loader.__dict__["batch_sampler"] = Joined(batches, value // batches.batch_size)

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        if loader is None:
            return None
        return isinstance(loader.batch_sampler, Joined) and loader.batch_size == value


def obstacle(loader: Any) -> str:
    """Why batches of this loader can't be made larger, as the end of a sentence; "" if they can."""
    if isinstance(own_dataset(loader), IterableDataset):
        return "an iterable dataset is not asked for samples by index"
    if type(loader.batch_sampler) is not BatchSampler or not isinstance(loader.batch_size, int):
        return "the loader does not make its batches by a size"
    return ""


KNOB = BatchSize
