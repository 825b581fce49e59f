"""Which copy of its dataset a loader loads from, in this process and in workers.

`handles` explains why there are copies, and makes them. This module knows the loaders of this process and which copy
belongs to which. A dataset of an unknown kind is always used as it is.
"""

from __future__ import annotations

import copy
from typing import Any, List, Optional

from ..loop.own_dataset import own_dataset
from .handles import DatasetCopy, Noted, exclusive, opens_exclusively

_noted = Noted()
_copies: List[DatasetCopy] = []
_MOST_COPIES = 4


def made(loader: Any) -> None:
    """A loader was made. What its dataset has open at this time was not opened lazily."""
    try:
        _noted.note(own_dataset(loader))
        loader.__dict__["_doctor_noted"] = True
    except Exception:
        loader.__dict__["_doctor_noted"] = False


def about_to_iterate(loader: Any) -> None:
    """An iterator of a loader is being made. Only before the first one has loading not opened anything yet."""
    if _is_noted(loader) and not loader.__dict__.get("_doctor_iterated"):
        loader.__dict__["_doctor_iterated"] = True
        try:
            _noted.note_flags(own_dataset(loader))
        except Exception:
            pass


def for_workers(loader: Any) -> Any:
    """The dataset for workers: if the user has no workers, without what was opened since the loader was made."""
    other = None if loader.num_workers else copy_of(loader, 1)
    return own_dataset(loader) if other is None else other.copy


def for_this_process(loader: Any) -> Any:
    """The loader; if the user has workers, a copy of it with a dataset that may open files in this process. None if
    that could not be made, or if this process would keep a file open that no other may then open."""
    if loader.num_workers and opens_exclusively():
        return None
    try:
        other = copy_of(loader, 0)
        if other is None:
            return loader
        other.refresh()
        made = copy.copy(loader)
        made.__dict__["dataset"] = other.copy
    except Exception:  # Changed while it was copied, by a thread of the user's.
        return None
    return made


def opened_early(loader: Any) -> str:
    """What the dataset had open when its loader was made, which forked workers would share; "" if nothing is known."""
    return _noted.opened_early(own_dataset(loader)) if _is_noted(loader) else ""


def copy_of(loader: Any, workers: int) -> Optional[DatasetCopy]:
    """The copy of the dataset that `workers` workers (0: the main process) load from; None: the dataset itself.

    The same copy each time, so that what it caches stays.
    """
    if (workers > 0) == (loader.num_workers > 0):
        return None
    try:
        if workers and not (_is_noted(loader) and _noted.opened_late(own_dataset(loader))):
            return None
        for known in _copies:
            if known.original is own_dataset(loader):
                return known
        new = DatasetCopy(own_dataset(loader), _noted.as_it_was if workers else None)
    except Exception:
        return None
    if new.copy is own_dataset(loader):
        return None
    _copies.append(new)
    del _copies[:-_MOST_COPIES]
    return new


def held_elsewhere(loader: Any, own: Optional[DatasetCopy]) -> List[Any]:
    """Handles that forked workers of this loader inherit in another copy of its dataset, and that they must close
    because the library refuses to open the same file twice."""
    try:
        others = (
            [known.copy for known in _copies if known.original is own_dataset(loader)]
            if own is None
            else [own.original]
        )
        mine = {id(each) for each in exclusive(own_dataset(loader))} if others else set()
        return [each for other in others for each in exclusive(other) if id(each) not in mine]
    except Exception:  # Changed while it was looked through, by a thread of the user's.
        return []


def _is_noted(loader: Any) -> bool:
    return bool(loader.__dict__.get("_doctor_noted"))
