"""`single_threaded`: libraries of which each loader worker uses one thread, as `openblas+opencv`. The effect is checked
by what the window's loader starts its workers with.

Each process has its own threads of such a library, as many as there are cores. So two workers have twice as many
threads as there are cores, and these threads wait for one another.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch.utils.data import IterableDataset

from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from ..process.originals import now, processor_time, sleep, thread_time
from . import Knob, _thread_pools, _worker_start
from ._generators import Generators
from .cached_samples import LOOKS

NAME = "single_threaded"
LOOK_SECONDS = 0.1
MOST_CALLS = 64
BESIDE = 0.2
"""Samples are prepared by several threads if the others compute for this part of the time of the first. Ours."""
SPIN_SECONDS = 0.25
"""Threads of OpenBLAS that have computed spin until there is more, for 0.11 s on a machine of ours; OpenMP's, less."""
GLANCE_SECONDS = 0.01


class SingleThreaded(Knob):
    name = NAME
    layer = "loader"
    takes_samples = True

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return None if loader is None else look(loader)

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        return True  # What it does needs nothing that was seen.

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        if value and loader.num_workers:
            loader.__dict__["worker_init_fn"] = OneThread(loader.worker_init_fn, str(value))

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else _worker_start.has(loader, OneThread) == bool(value)


class OneThread(_worker_start.WorkerStart):
    """After which libraries of a worker compute with one thread."""

    def __init__(self, theirs: Any, libraries: str) -> None:
        super().__init__(theirs)
        self._libraries = libraries.split("+")

    def then(self) -> None:
        _thread_pools.limit(self._libraries)


def look(loader: Any) -> Dict[str, Any]:
    """`several`: whether other threads of this process compute while the calling thread prepares samples; None where it
    can't be asked for samples. `libraries`: whose threads these may be. `obstacle`: why that can't be told, as the end
    of a sentence, or ""."""
    several, dataset = None, own_dataset(loader)
    if not isinstance(dataset, IterableDataset):
        try:
            several = _others(dataset) > BESIDE
            if several:
                # Something else in this process may have computed once: a log's writer, or threads that spun although
                # they looked silent, because a busy machine had put them aside.
                sleep(SPIN_SECONDS)
                several = _others(dataset) > BESIDE
        except Exception as error:
            return {"obstacle": f"preparing a sample in the main process failed ({type(error).__name__})"}
    # A sample may have imported what it computes with.
    return {"obstacle": "", "several": several, "libraries": sorted(_thread_pools.threads())}


def _others(dataset: Any) -> float:
    """Seconds that other threads compute for each second in which the calling thread prepares samples. torch has one
    thread meanwhile, as it has in a worker. May raise."""
    before, of_torch = Generators(dataset), torch.get_num_threads()
    count = len(dataset)
    torch.set_num_threads(1)
    try:
        dataset[0]  # It may import what it computes with.
        _await_silence()
        begun, of_all, own = now(), processor_time(), thread_time()
        for call in range(MOST_CALLS):
            # The same few as `cached_samples` looks at: another sample may be a file that nobody has read yet.
            dataset[(call % LOOKS[1]) * 7919 % count]
            if now() - begun > LOOK_SECONDS:
                break
        of_all, own = processor_time() - of_all, thread_time() - own
    finally:
        torch.set_num_threads(of_torch)
        before.put_back()
    return max(0.0, of_all - own) / own if own > 0 else 0.0


def _await_silence() -> None:
    """Wait until the other threads of this process have stopped spinning, if they do."""
    until = now() + SPIN_SECONDS
    while now() < until:
        computed = processor_time()
        sleep(GLANCE_SECONDS)
        if processor_time() - computed < BESIDE * GLANCE_SECONDS:
            return


KNOB = SingleThreaded
