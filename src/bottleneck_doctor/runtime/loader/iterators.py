"""The iterators that the user's loop holds: torch's own, which return every batch.

Every loader of torch calls `_BaseDataLoaderIter.__next__`, whatever subclass, framework or generator is around it.
While the guest observes, the call goes through. While it serves, the user's iterator is a shell, and the batches come
from a `Feed`.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Iterator, Optional

import torch.utils.data.dataloader as dataloader
from torch.utils.data import IterDataPipe

from ..loop.own_dataset import own_dataset
from ..process import parent_death
from ..process.originals import get_frame
from ..process.user_code import user_site
from . import dataset_copies
from .attributes import is_iterable
from .shadow import IN_THIS_PROCESS, draw_apart, shadow_of
from .takers import dataset_takers_of, takers_of

_BaseIter = dataloader._BaseDataLoaderIter
_original_next = _BaseIter.__next__
_original_init = _BaseIter.__init__
_original_get_iterator = dataloader.DataLoader._get_iterator
_original_loader_init = dataloader.DataLoader.__init__


def install(on_next: Callable[[Any, Any], Any], on_get_iterator: Callable[[Any], Any]) -> None:
    """Patch torch's classes in place. `on_next(iterator, loader)` returns the batches of iterators whose loader is
    known; `on_get_iterator(loader)` may return an iterator to use instead of the loader's own, or None."""

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
        takers = None if site is None else takers_of(get_frame(1), self, kwargs)
        if takers is not None:
            self.__dict__["_doctor_takers"] = takers
            self.__dict__["_doctor_dataset_takers"] = dataset_takers_of(get_frame(1), self)
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
    """The next batch as torch alone gives it."""
    return _original_next(iterator)


class _Lazily:
    """Stands for an iterable, and requests its iterator only when the first element is requested."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        yield from self._of


def shell(loader: Any, again: bool = False) -> Any:
    """An iterator of the user's loader that starts no workers: what the user holds while the guest serves.

    It draws one seed, as the user's own does. `again`: the workers that it stands for are persistent and already have
    their seed. It takes nothing from sampler and dataset, because a feed does; but it has both, for a loop that takes
    batches without the guest.
    """
    shadow = shadow_of(loader, IN_THIS_PROCESS)
    stubs = ["batch_sampler" if loader._auto_collation else "sampler"]
    if is_iterable(loader) and not isinstance(own_dataset(loader), IterDataPipe):
        # A file that it opens in this process might be shared with workers.
        stubs.append("dataset")
    for name in stubs:
        shadow.__dict__[name] = _Lazily(getattr(loader, name))
    if again:
        draw_apart(shadow)
    iterator: Any = dataloader._SingleProcessDataLoaderIter(shadow)
    iterator._index_sampler = loader._index_sampler
    iterator._dataset = own_dataset(loader)
    iterator._doctor_loader = weakref.ref(loader)
    return iterator


def ahead(iterator: Any) -> int:
    """Batches that workers were asked for by this iterator of torch's, and that nobody has taken yet."""
    asked, taken = getattr(iterator, "_send_idx", 0), getattr(iterator, "_rcvd_idx", 0)
    return max(0, asked - taken) if isinstance(asked, int) and isinstance(taken, int) else 0


def retire(iterator: Any, loader: Any) -> Optional[Iterator[Any]]:
    """Turn the user's running iterator into a shell: its workers end, its sampler is handed over."""
    sampler_iterator = getattr(iterator, "_sampler_iter", None)
    if hasattr(iterator, "_shutdown_workers"):
        iterator._shutdown_workers()
    if loader.__dict__.get("_iterator") is iterator:
        loader.__dict__["_iterator"] = None
    return None if is_iterable(loader) else sampler_iterator
