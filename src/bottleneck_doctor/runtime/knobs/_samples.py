"""Samples of a dataset, looked at more than once: whether two are the same."""

from __future__ import annotations

import sys
from typing import Any, Iterator, List, Optional, Tuple

import torch

from .batched_fetch import same_batch


def alike(one: Any, other: Any) -> Optional[bool]:
    """Whether two samples are exactly equal; None if that can't be told."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return same_batch(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and _all_alike([(one[key], other[key]) for key in one])
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and _all_alike(list(zip(one, other)))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(one, (numpy.ndarray, numpy.generic)):
        alike_in_kind = one.dtype == other.dtype and one.shape == other.shape
        return bool(alike_in_kind and (one.dtype.hasobject or one.tobytes() == other.tobytes()))
    if one is None or isinstance(one, (bool, int, float, complex, str, bytes, torch.dtype)):
        return bool(one == other or (one != one and other != other))
    if callable(getattr(one, "tobytes", None)):  # A picture of PIL's.
        return bool(one.tobytes() == other.tobytes())
    return None


def _all_alike(pairs: List[Tuple[Any, Any]]) -> Optional[bool]:
    told = [alike(one, other) for one, other in pairs]
    return None if None in told else all(told)


def parts(one: Any, other: Any, place: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Any, Any]]:
    """The parts of two samples, or batches, that stand at the same place: how one gets there, and both."""
    if type(one) is type(other) and isinstance(one, dict) and list(one) == list(other):
        for key in one:
            yield from parts(one[key], other[key], (*place, key))
    elif type(one) is type(other) and isinstance(one, (list, tuple)) and len(one) == len(other):
        for index, (inner, inner_other) in enumerate(zip(one, other)):
            yield from parts(inner, inner_other, (*place, index))
    else:
        yield place, one, other
