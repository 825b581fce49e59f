"""Copies of a loader under another setting: what the workers of the copy are told when they start."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader

from bottleneck_doctor.runtime.loader.shadow import shadow_of

ROWS: Any = list(range(8))


def seeded(worker: int, num_workers: Any, rank: int) -> None:
    """As mmengine has it: it draws the seeds of the workers."""
    torch.manual_seed(num_workers * rank + worker)


def test_workers_are_told_how_many_they_are_by_then() -> None:
    loader: Any = DataLoader(ROWS, batch_size=4, worker_init_fn=partial(seeded, num_workers=None, rank=1))
    shadow = shadow_of(loader, {"num_workers": 2})
    assert shadow.worker_init_fn.keywords == {"num_workers": 2, "rank": 1}
    assert loader.worker_init_fn.keywords == {"num_workers": None, "rank": 1}
    assert [each.tolist() for each in shadow] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_other_starts_stay_as_they_are() -> None:
    for start in (None, partial(seeded, rank=1), lambda worker: None):
        loader: Any = DataLoader(ROWS, worker_init_fn=start)
        assert shadow_of(loader, {"num_workers": 2}).worker_init_fn is start
    told = partial(seeded, num_workers=1, rank=0)
    loader = DataLoader(ROWS, num_workers=1, worker_init_fn=told)
    assert shadow_of(loader, {"pin_memory": False}).worker_init_fn is told
