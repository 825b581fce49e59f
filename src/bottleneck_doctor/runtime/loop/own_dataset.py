"""The dataset that a loader's batches come from."""

from __future__ import annotations

from typing import Any


def own_dataset(loader: Any) -> Any:
    """The dataset that the iterators of a loader of torch's get. A class of loaders may answer with another object when
    it is asked for its `dataset` from outside: RecBole's do, whose iterators go through a list of numbers."""
    try:
        return loader.__dict__["dataset"]
    except KeyError:
        return loader.dataset
