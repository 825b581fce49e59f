"""Serves batches at torch's own iterator base class: one index stream, many worker set-ups.

`_BaseDataLoaderIter.__next__` is where every loader of torch passes, whatever subclass, framework or generator stands
around it. While the guest observes, the call goes through. While it serves, the user's iterator is a shell, and the
batches come from a `Feed`: an iterator of torch's own, built for one window from the user's own loader with the
window's setting.
"""

from __future__ import annotations

import copy
import functools
import operator
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
import torch.utils.data.dataloader as dataloader
from torch.utils.data import IterDataPipe

from ..knobs import arguments
from ..process import parent_death
from ..process.user_code import user_site
from ..wire.messages import Site
from . import dataset_copies
from .handles import let_go

_BaseIter = dataloader._BaseDataLoaderIter
_original_next = _BaseIter.__next__
_original_init = _BaseIter.__init__
_original_get_iterator = dataloader.DataLoader._get_iterator
_original_loader_init = dataloader.DataLoader.__init__

IN_THIS_PROCESS = {"num_workers": 0}
"""The setting under which no other process makes batches."""
DEFAULT_PREFETCH = 2
READY_SECONDS = 0.0005
"""A batch that comes faster than this lay ready: taking one over from another process costs 0.1 to 0.3 ms."""


def install(on_next: Callable[[Any, Any], Any], on_get_iterator: Callable[[Any], Any]) -> None:
    """Patch torch's classes in place. `on_next(iterator, loader)` answers for iterators whose loader is known;
    `on_get_iterator(loader)` may return an iterator to use instead of the loader's own, or None."""

    @functools.wraps(_original_init)
    def init(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        dataset_copies.about_to_iterate(loader)
        _original_init(self, loader, *args, **kwargs)
        # A loader that nobody else holds (`for batch in DataLoader(...)`) must live as long as its iterator; one whose
        # workers persist holds the iterator itself.
        self._doctor_loader = weakref.ref(loader) if loader.persistent_workers else lambda: loader

    @functools.wraps(_original_next)
    def next_(self: Any) -> Any:
        reference = self.__dict__.get("_doctor_loader")
        loader = reference() if reference is not None else None
        if loader is None or "_doctor_internal" in self.__dict__:
            return _original_next(self)
        return on_next(self, loader)

    @functools.wraps(_original_get_iterator)
    def get_iterator(self: Any) -> Any:
        offered = on_get_iterator(self)
        if offered is not None:
            return offered
        with parent_death.ended():
            return _original_get_iterator(self)

    @functools.wraps(_original_loader_init)
    def loader_init(self: Any, *args: Any, **kwargs: Any) -> None:
        site = user_site(2)
        if site is not None:
            self.__dict__["_doctor_site"] = site
        _original_loader_init(self, *args, **kwargs)
        dataset_copies.made(self)

    patches = (
        (_BaseIter, "__init__", init),
        (_BaseIter, "__next__", next_),
        (dataloader.DataLoader, "_get_iterator", get_iterator),
        (dataloader.DataLoader, "__init__", loader_init),
    )
    for owner, name, patch in patches:
        setattr(owner, name, patch)


def plain_next(iterator: Any) -> Any:
    """The next batch as torch alone would give it."""
    return _original_next(iterator)


def construction_site(loader: Any) -> Optional[Site]:
    """Where the user's code made this loader."""
    site = loader.__dict__.get("_doctor_site")
    return site if isinstance(site, Site) else None


def epoch_length(loader: Any) -> Optional[int]:
    """Batches in one pass, where the loader knows it."""
    if loader._dataset_kind == dataloader._DatasetKind.Iterable:
        return None
    try:
        return len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        return None


def batch_size(loader: Any) -> Any:
    """As the user gave it; None where the loader is none of torch's own and has none."""
    return getattr(loader, "batch_size", None)


def is_iterable(loader: Any) -> bool:
    return bool(loader._dataset_kind == dataloader._DatasetKind.Iterable)


def own_setting(loader: Any) -> Dict[str, Any]:
    """The user's own values of the loader knobs."""
    return {
        "num_workers": whole(loader.num_workers) or 0,
        "prefetch_factor": whole(loader.prefetch_factor),
        "persistent_workers": bool(loader.persistent_workers),
        "pin_memory": bool(loader.pin_memory),
    }


def whole(value: Any) -> Optional[int]:
    """A number as users give it, which may be NumPy's; None for what is none."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def worker_died(error: BaseException) -> bool:
    """Whether torch raised this because a worker is gone: at the next signal, wherever the main process is by then."""
    return isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker (pid")


class IndexStream:
    """One endless stream of batch indices out of the user's own sampler.

    A new window must not restart the epoch: it would read files again that now lie in the page cache, and flatter
    whoever comes second. The stream outlives windows and epochs.
    """

    def __init__(self, sampler: Any, current: Optional[Iterator[Any]] = None) -> None:
        self._sampler = sampler
        self._current = current
        self._ahead: List[Any] = []

    def epoch_over(self) -> None:
        """All batches of an epoch were handed out: a sampler may draw once more as it comes to its end."""
        if self._current is not None and not self._ahead:
            try:
                self._ahead.append(next(self._current))
            except StopIteration:
                self._current = None

    def take(self) -> Any:
        """The next index. Raises `StopIteration` only where the sampler gives nothing at all."""
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
    """Stands in for the loader's sampler: the first pass may be limited, later ones run on."""

    def __init__(self, stream: IndexStream, first_pass: Optional[int] = None) -> None:
        self._stream = stream
        self._limit = first_pass

    def __iter__(self) -> Iterator[Any]:
        # torch asks for an iterator at construction and again at each reset; the limit lasts until it was used up.
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
        self._shadow = _shadow(loader, setting)
        if not lasting:
            self._shadow.__dict__["persistent_workers"] = False
        _draw_apart(self._shadow)
        self._copy = dataset_copies.copy_of(loader, self._shadow.num_workers)
        if self._copy is not None:
            self._shadow.__dict__["dataset"] = self._copy.copy
        self._stream = stream
        self._iterator: Any = None
        self._iterable = is_iterable(loader)
        self._started = 0
        self.workers = self._shadow.num_workers
        self.depth = self.workers * (self._shadow.prefetch_factor or DEFAULT_PREFETCH)
        self.persistent = self._shadow.persistent_workers and self.workers > 0

    @property
    def endless(self) -> bool:
        """Whether batches go on from one epoch into the next without a new start."""
        return self._stream is not None and not self._iterable

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
        sampler = _StreamSampler(self._stream, first_pass=self.workers)
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
        self._shadow.__dict__[name] = sampler

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
        """Batches that lie ready to be taken."""
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

    def exit_codes(self) -> List[int]:
        """How workers ended that should not have: negative for a signal."""
        return [worker.exitcode for worker in getattr(self._iterator, "_workers", ()) if worker.exitcode]

    def close(self) -> None:
        """End the workers as torch does at the end of an epoch. What becomes of one that has done its work is nobody's
        failure: some libraries abort a process that comes to its end."""
        iterator, self._iterator = self._iterator, None
        if iterator is not None and self.workers:
            try:
                iterator._shutdown_workers()
            except RuntimeError as error:
                if not worker_died(error):
                    raise

    def kill(self) -> None:
        """End the workers at once."""
        for worker in getattr(self._iterator, "_workers", ()):
            worker.kill()


def _shadow(loader: Any, setting: Dict[str, Any]) -> Any:
    shadow = copy.copy(loader)
    values = shadow.__dict__
    values.update(arguments(setting))
    values["_iterator"] = None
    if values["num_workers"] == 0:
        values["prefetch_factor"] = None
        values["persistent_workers"] = False
        values["timeout"] = 0
        values["_DataLoader__multiprocessing_context"] = None
    elif getattr(shadow, "prefetch_factor", None) is None:
        values["prefetch_factor"] = DEFAULT_PREFETCH
    return shadow


_generators: Dict[str, torch.Generator] = {}


def _draw_apart(shadow: Any) -> None:
    """Have this copy of a loader draw seeds for its workers from a generator of ours.

    torch draws one for every iterator. The iterators of windows are more than the user's loop would make, and what its
    model and its sampler draw afterwards must not depend on how many there were.
    """
    try:
        given = shadow.generator
        device = torch.empty(()).device if given is None else given.device
        mine = _generators.get(str(device))
        if mine is None:
            mine = _generators[str(device)] = torch.Generator(device)
            mine.manual_seed(torch.initial_seed())
    except (RuntimeError, AttributeError):  # A device without generators of its own.
        return
    shadow.__dict__["generator"] = mine


class _Lazily:
    """Stands for an iterable, and asks it for an iterator only once somebody asks for what is in it."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        yield from self._of


def shell(loader: Any, again: bool = False) -> Any:
    """An iterator of the user's loader that starts no workers: what the user holds while the guest serves.

    It draws one seed, as the user's own would. `again`: the workers that it stands for persist, and were given theirs.
    Sampler and dataset are not asked for anything, since a feed asks them; but they are there for a loop that takes
    batches past the guest.
    """
    shadow = _shadow(loader, IN_THIS_PROCESS)
    stubs = ["batch_sampler" if loader._auto_collation else "sampler"]
    if is_iterable(loader) and not isinstance(loader.dataset, IterDataPipe):
        # A file that it opens in this process might be shared with workers.
        stubs.append("dataset")
    for name in stubs:
        shadow.__dict__[name] = _Lazily(getattr(loader, name))
    if again:
        _draw_apart(shadow)
    iterator: Any = dataloader._SingleProcessDataLoaderIter(shadow)
    iterator._index_sampler = loader._index_sampler
    iterator._dataset = loader.dataset
    iterator._doctor_loader = weakref.ref(loader)
    return iterator


def retire(iterator: Any, loader: Any) -> Optional[Iterator[Any]]:
    """Turn the user's running iterator into a shell: its workers end, its sampler is handed over."""
    sampler_iterator = getattr(iterator, "_sampler_iter", None)
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()
    if loader.__dict__.get("_iterator") is iterator:
        loader.__dict__["_iterator"] = None
    return None if is_iterable(loader) else sampler_iterator
