"""Where batches come from while the guest serves: one stream of indices for many configurations of workers.

A `Feed` is one of torch's own iterators, built for one window from the user's loader with the window's setting.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

import torch
import torch.utils.data.dataloader as dataloader

from ..knobs import shape
from ..knobs._rebatched import Rebatched
from ..process import parent_death
from . import dataset_copies
from .attributes import is_iterable, samples_told, worker_died
from .handles import let_go
from .iterators import plain_next
from .shadow import DEFAULT_PREFETCH, draw_apart, shadow_of

READY_SECONDS = 0.0005
"""A batch that comes faster than this was ready: taking one from another process costs 0.1 to 0.3 ms."""


class IndexStream:
    """One endless stream of batch indices from the user's own sampler.

    A new window must not restart the epoch: it would read files that are now in the page cache, so the second setting
    would seem faster than it is. The stream outlives windows and epochs.
    """

    def __init__(self, sampler: Any, current: Optional[Iterator[Any]] = None) -> None:
        self._sampler = sampler
        self._current = current
        self._ahead: List[Any] = []
        self.taken = 0
        """Indices that were taken."""

    def epoch_over(self) -> None:
        """All batches of an epoch were handed out. A sampler may draw random numbers once more when it ends."""
        if self._current is not None and not self._ahead:
            try:
                self._ahead.append(next(self._current))
            except StopIteration:
                self._current = None

    def take(self) -> Any:
        """The next index. Raises `StopIteration` only if the sampler gives nothing at all."""
        index = self._next()
        self.taken += 1
        return index

    def _next(self) -> Any:
        if self._ahead:
            return self._ahead.pop()
        if self._current is not None:
            try:
                return next(self._current)
            except StopIteration:
                pass
        self._current = iter(self._sampler)
        return next(self._current)


class _StreamSampler:
    """Stands in for the loader's sampler. The first pass may be limited; later ones are endless."""

    def __init__(self, stream: IndexStream, first_pass: Optional[int] = None) -> None:
        self._stream = stream
        self._limit = first_pass

    def __iter__(self) -> Iterator[Any]:
        # torch requests an iterator at construction and again at each reset; the limit applies until it is used up.
        while self._limit is None or self._limit > 0:
            if self._limit is not None:
                self._limit -= 1
            try:
                index = self._stream.take()
            except StopIteration:
                return
            yield index

    def lift_limit(self) -> None:
        self._limit = None


class Feed:
    """An iterator of torch's own for one window: the user's loader with some values changed.

    `stream` None means real epochs of the user's own sampler; each `start_epoch` then begins one. `lasting`: whether
    the user's loader outlives its epoch, as it must for workers to persist.
    """

    def __init__(
        self, loader: Any, setting: Dict[str, Any], stream: Optional[IndexStream], *, lasting: bool = True
    ) -> None:
        self._shadow = shadow_of(loader, setting, lasting=lasting)
        draw_apart(self._shadow)
        self._copy = dataset_copies.copy_of(loader, self._shadow.num_workers)
        if self._copy is not None:
            self._shadow.__dict__["dataset"] = self._copy.copy
        shape(self._shadow, setting)
        self.samples_told = samples_told(self._shadow)
        """As its own batch sampler says, which an open feed has another one for."""
        self._stream = stream
        self._iterator: Any = None
        self._iterable = is_iterable(loader)
        self._started = 0
        self.workers = self._shadow.num_workers
        self.depth = self.workers * (self._shadow.prefetch_factor or DEFAULT_PREFETCH)
        self.persistent = self._shadow.persistent_workers and self.workers > 0

    @property
    def endless(self) -> bool:
        """Whether batches continue from one epoch into the next without a restart."""
        return self._stream is not None and not self._iterable

    @property
    def iterable(self) -> bool:
        """Whether the dataset is an iterable, which begins anew with each iterator of torch's."""
        return self._iterable

    @property
    def loader(self) -> Any:
        """The copy of the user's loader that batches come from."""
        return self._shadow

    @property
    def iterator(self) -> Any:
        """torch's own iterator; None while it is not open."""
        return self._iterator

    def open(self) -> None:
        """Make the iterator (and start its workers), or start its next epoch where the workers persist."""
        if self._iterator is not None and self.persistent:
            self._iterator._reset(self._shadow)
            return
        self.close()
        if self._stream is not None and not self._iterable:
            self._set_sampler(_StreamSampler(self._stream))
        self._make()

    def open_warm(self) -> None:
        """As `open`, but where workers persist: start them, spend one batch each, and begin a second epoch at once."""
        if not self.persistent or self._stream is None or self._iterable:
            self.open()
            return
        present = self._shadow.__dict__.get("batch_sampler")
        each = present.times if isinstance(present, Rebatched) else 1
        sampler = _StreamSampler(self._stream, first_pass=self.workers * each)
        self._set_sampler(sampler)
        self._make()
        try:
            while True:
                plain_next(self._iterator)
        except StopIteration:
            sampler.lift_limit()

    def restart(self) -> None:
        """The second epoch after `open_warm`; nothing where that opened the only one."""
        if self.persistent and self._stream is not None and not self._iterable:
            self._iterator._reset(self._shadow)

    def _set_sampler(self, sampler: Any) -> None:
        name = "batch_sampler" if self._shadow._auto_collation else "sampler"
        present = self._shadow.__dict__.get(name)
        self._shadow.__dict__[name] = present.of(sampler) if isinstance(present, Rebatched) else sampler

    def _make(self) -> None:
        if self._copy is not None:
            self._copy.refresh()
        if self.workers == 0:
            self._iterator = dataloader._SingleProcessDataLoaderIter(self._shadow)
        else:
            with parent_death.ended(), let_go(dataset_copies.held_elsewhere(self._shadow, self._copy)):
                self._iterator = dataloader._MultiProcessingDataLoaderIter(self._shadow)
        self._iterator._doctor_internal = True
        self._started = sum(1 for worker in getattr(self._iterator, "_workers", ()) if worker.is_alive())

    def next(self) -> Any:
        return plain_next(self._iterator)

    def ready(self) -> int:
        """Number of batches that are ready."""
        iterator = self._iterator
        if iterator is None or self.workers == 0:
            return 0
        waiting = sum(1 for info in iterator._task_info.values() if len(info) == 2)
        queues: List[Any] = [iterator._worker_result_queue]
        if iterator._data_queue is not iterator._worker_result_queue:
            queues.append(iterator._data_queue)
        for queue in queues:
            try:
                waiting += queue.qsize()
            except (NotImplementedError, OSError):
                pass
        return waiting

    def live_workers(self) -> int:
        """Worker processes that really started."""
        return self._started

    def worker_pids(self) -> Optional[List[int]]:
        """Process ids of the workers that live; None if they have ended already, or their place is not on this list."""
        workers = getattr(self._iterator, "_workers", ())
        pids = [worker.pid for worker in workers if worker.is_alive()]
        return pids if len(pids) == self.workers else None

    def exit_codes(self) -> List[int]:
        """Exit codes of workers that ended unexpectedly; negative for a signal."""
        return [worker.exitcode for worker in getattr(self._iterator, "_workers", ()) if worker.exitcode]

    def close(self) -> None:
        """End the workers as torch does at the end of an epoch. How they exit does not matter then: some libraries
        abort a process when it exits."""
        iterator, self._iterator = self._iterator, None
        if iterator is not None and self.workers:
            try:
                iterator._shutdown_workers()
            except RuntimeError as error:
                if not worker_died(error):
                    raise

    def kill(self) -> None:
        """End the workers at once."""
        iterator = self._iterator
        if getattr(iterator, "_worker_pids_set", False):
            # torch would take this for a failure, and raise it wherever the program is by then.
            torch._C._remove_worker_pids(id(iterator))
            iterator._worker_pids_set = False
        for worker in getattr(iterator, "_workers", ()):
            worker.kill()
