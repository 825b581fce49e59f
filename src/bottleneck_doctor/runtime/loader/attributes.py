"""Attributes of a torch loader, and the exceptions that it raises."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional

import torch.utils.data.dataloader as dataloader

from ..wire.messages import Site, Taker


def construction_site(loader: Any) -> Optional[Site]:
    """Where the user's code made this loader."""
    site = loader.__dict__.get("_doctor_site")
    return site if isinstance(site, Site) else None


def takers_known(loader: Any) -> Optional[List[Taker]]:
    """What takes this loader's arguments; None where the user's line makes it."""
    takers = loader.__dict__.get("_doctor_takers")
    return takers if isinstance(takers, list) else None


def dataset_takers_known(loader: Any) -> List[Taker]:
    """What is given this loader's dataset where a library makes the loader."""
    takers = loader.__dict__.get("_doctor_dataset_takers")
    return takers if isinstance(takers, list) else []


def known_as(loader: Any) -> Any:
    """The loader that the user knows. Fastai's hand torch's iterators an object of their own, which holds them."""
    return getattr(loader, "d", loader) if library(loader) == "fastai" else loader


def library(loader: Any) -> str:
    """Whose class of loaders it is, by the first part of its module."""
    return type(loader).__module__.partition(".")[0]


def epoch_length(loader: Any) -> Optional[int]:
    """Batches in one pass, if the loader knows it."""
    if loader._dataset_kind == dataloader._DatasetKind.Iterable:
        return None
    try:
        return len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        return None


def batch_size(loader: Any) -> Any:
    """As the user gave it; None where the loader is none of torch's own and has none."""
    return getattr(loader, "batch_size", None)


def samples_told(loader: Any) -> Optional[int]:
    """How many samples its batches have, as the loader or its batch sampler says; None where neither does. A sampler of
    the user's may make batches of other lengths."""
    sampler = getattr(loader, "batch_sampler", None)
    return whole(batch_size(loader)) or whole(getattr(sampler, "batch_size", None))


def is_iterable(loader: Any) -> bool:
    return bool(loader._dataset_kind == dataloader._DatasetKind.Iterable)


def own_setting(loader: Any) -> Dict[str, Any]:
    """The user's own values of what decides how workers load."""
    return {
        "num_workers": whole(loader.num_workers) or 0,
        "prefetch_factor": whole(loader.prefetch_factor),
        "persistent_workers": bool(loader.persistent_workers),
        "pin_memory": bool(loader.pin_memory),
        "timeout": float(loader.timeout),
        "own_start_method": loader.multiprocessing_context is not None,
    }


def whole(value: Any) -> Optional[int]:
    """A number that a user gave, which may be NumPy's; None if it is no number."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def worker_died(error: BaseException) -> bool:
    """Whether torch raised this because a worker ended. It does so at the next signal, wherever the main process is."""
    return isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker (pid")
