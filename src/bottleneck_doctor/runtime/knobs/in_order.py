"""`in_order`: whether workers' batches are handed over in the order in which they were asked for, or in the order in
which they are ready (`False`, since torch 2.6). The effect is checked on the live iterator.

It may be changed where the order of samples is drawn at random, by a sampler of torch's own. In any other order, there
may be a meaning.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from . import Knob

NAME = "in_order"


class InOrder(Knob):
    name = NAME
    layer = "loader"
    argument = True

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return None if loader is None else obstacle(loader)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return {"off": True} if getattr(loader, NAME, True) is False else None

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        return getattr(feed.iterator, "_in_order", None) is bool(value)


def obstacle(loader: Any) -> str:
    """Why this loader's batches have to come in order, as the end of a sentence; "" if they need not."""
    if not hasattr(loader, NAME):
        return f"`in_order` came with torch 2.6, and this is {torch.__version__}"
    if not loader.in_order:
        return "already on: the loader hands over batches as soon as they are ready"
    if isinstance(own_dataset(loader), IterableDataset):
        return "an iterable dataset sets the order of its samples itself, which may have a meaning"
    sampler: Any = loader.batch_sampler
    if type(sampler) is BatchSampler:
        sampler = sampler.sampler
    elif sampler is None:
        sampler = loader.sampler
    if not _at_random(sampler):
        return "the loader does not shuffle its samples with a sampler of torch's, so their order may have a meaning"
    return ""


def _at_random(sampler: Any) -> bool:
    if type(sampler) is DistributedSampler:
        return bool(sampler.shuffle)
    return type(sampler) in (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


KNOB = InOrder
