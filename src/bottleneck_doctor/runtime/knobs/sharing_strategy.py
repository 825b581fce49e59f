"""`sharing_strategy`: how workers hand the tensors of a batch over (`file_system`: by the names of their memory). The
effect is checked by what the window's loader starts its workers with.

Torch's default on Linux sends an open file for each tensor. The training process asks the worker for each of them over
a new connection, whose ends prove to each other that they may talk. A name is a part of the message itself.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any, Optional

import torch
import torch.multiprocessing

from ..loop.batches import tensors_of
from ..loop.steps import Steps
from . import Knob, _seen_batches, _worker_start

NAME = "sharing_strategy"
BY_NAME = "file_system"
MOST_SEEN = 2
"""So many batches of a loader are looked at."""
_torch: Any = torch.multiprocessing


class SharingStrategy(Knob):
    name = NAME
    layer = "loader"

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        seen = _seen_batches.of_loader(steps, NAME, loader)
        if len(seen) < MOST_SEEN:
            seen.append(tensors_handed_over(batch) if loader.num_workers else len(tensors_of(batch)))

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        seen = _seen_batches.taken(steps, NAME, loader)
        return {"tensors": min(seen)} if seen else None

    @classmethod
    def own(cls) -> Any:
        strategy = _torch.get_sharing_strategy()
        return strategy if sys.platform == "linux" and strategy == BY_NAME else None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        if loader is None:
            return None
        known = _torch.get_all_sharing_strategies()
        return "" if len(known) > 1 and BY_NAME in known else "tensors are shared by name on this system anyway"

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        if value and loader.num_workers:
            loader.__dict__["worker_init_fn"] = Shares(loader.worker_init_fn, str(value))

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else _worker_start.has(loader, Shares) == bool(value)


class Shares(_worker_start.WorkerStart):
    """After which a worker hands tensors over in this way."""

    def __init__(self, theirs: Any, strategy: str) -> None:
        super().__init__(theirs)
        self._strategy = strategy

    def then(self) -> None:
        _torch.set_sharing_strategy(self._strategy)


def tensors_handed_over(batch: Any) -> int:
    """The tensors that a worker hands over in a batch, whatever objects they lie in."""
    counted = _Counted()
    try:
        counted.dump(batch)
    except Exception:
        return len(tensors_of(batch))
    return counted.tensors


class _Counted(pickle.Pickler):
    """Pickles nothing but the way to the tensors, and counts these."""

    def __init__(self) -> None:
        super().__init__(self)
        self.tensors = 0

    def write(self, data: Any) -> int:
        return len(data)

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, torch.Tensor):
            return NotImplemented
        self.tensors += 1
        return int, ()


KNOB = SharingStrategy
