"""Batches that are kept, and served again to measure training without the cost of loading."""

from __future__ import annotations

import copy
from typing import Any, List, Optional

import torch

from ..loop.batches import tensors_of

KEPT_BATCHES = 10
KEPT_BYTES = 1 << 30


class BatchCache:
    """A few real batches, kept for replay."""

    def __init__(self) -> None:
        self.batches: List[Any] = []
        self._bytes = 0

    def offer(self, batch: Any) -> None:
        if len(self.batches) >= KEPT_BATCHES:
            return
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(batch))
        if not self.batches or self._bytes + size <= KEPT_BYTES:
            self._bytes += size
            self.batches.append(_apart(batch))


def _apart(batch: Any, depth: int = 0) -> Any:
    """The batch in new containers, because a loop may remove things from those that it gets, or replace tensors by
    copies on a device."""
    if isinstance(batch, torch.Tensor):
        return batch
    if type(batch) is dict and depth < 4:
        return {name: _apart(value, depth + 1) for name, value in batch.items()}
    if type(batch) in (list, tuple) and depth < 4:
        return type(batch)(_apart(value, depth + 1) for value in batch)
    try:
        return copy.copy(batch)
    except Exception:  # It can be had once only.
        return batch


class ReplayFeed:
    """Serves kept batches. An epoch has as many of them as the user's."""

    replays = True
    workers = 0
    depth = 0
    persistent = False
    endless = False
    iterable = False

    def __init__(self, batch_cache: BatchCache, epoch: Optional[int]) -> None:
        self._batch_cache = batch_cache
        self._epoch = epoch
        self._served = 0
        self._position = 0

    def open(self) -> None:
        self._served = 0

    open_warm = open

    def restart(self) -> None:
        """Nothing to start."""

    def next(self) -> Any:
        if self._epoch is not None and self._served >= self._epoch:
            raise StopIteration
        self._served += 1
        self._position += 1
        return _apart(self._batch_cache.batches[self._position % len(self._batch_cache.batches)])

    def ready(self) -> int:
        return 0

    def live_workers(self) -> int:
        return 0

    def worker_pids(self) -> List[int]:
        return []

    def exit_codes(self) -> List[int]:
        return []

    def close(self) -> None:
        """Nothing to end."""

    kill = close
