"""Samples of a dataset, looked at more than once: whether two are the same, and whether a random generator was asked
meanwhile."""

from __future__ import annotations

import random
import sys
from typing import Any, List, Optional, Tuple

import torch

from .batched_fetch import same_batch


class Generators:
    """The global random generators as they stand."""

    def __init__(self) -> None:
        self._states = self._now()

    @staticmethod
    def _now() -> Tuple[Any, Any, Any]:
        numpy = sys.modules.get("numpy.random")
        return random.getstate(), torch.get_rng_state(), None if numpy is None else numpy.get_state(legacy=False)

    def drew(self) -> bool:
        """Whether one of them has moved."""
        (own, of_torch, of_numpy), (own_now, torch_now, numpy_now) = self._states, self._now()
        return own != own_now or not torch.equal(of_torch, torch_now) or not alike(of_numpy, numpy_now)

    def put_back(self) -> None:
        own, of_torch, of_numpy = self._states
        random.setstate(own)
        torch.set_rng_state(of_torch)
        if of_numpy is not None:
            sys.modules["numpy.random"].set_state(of_numpy)


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
    if one is None or isinstance(one, (bool, int, float, complex, str, bytes)):
        return bool(one == other or (one != one and other != other))
    if callable(getattr(one, "tobytes", None)):  # A picture of PIL's.
        return bool(one.tobytes() == other.tobytes())
    return None


def _all_alike(pairs: List[Tuple[Any, Any]]) -> Optional[bool]:
    told = [alike(one, other) for one, other in pairs]
    return None if None in told else all(told)
