"""The samples and tensors of a batch, whatever the batch is made of."""

from __future__ import annotations

import itertools
from typing import Any, Iterator, List, Optional, Sequence

import torch

from ..process.uses import own_attributes

_MOST_PARTS = 16
"""At most this many parts of a batch are looked at: this happens for every batch, and a list may hold thousands."""
_MOST_COUNTED = 1000
"""At most this many parts are looked at for tensors, however they are nested."""


def batch_samples(batch: Any, batch_size: Optional[int] = None, depth: int = 0) -> float:
    """Samples in a batch: the first dimension of its first tensor; 1 if there is none.

    If the first tensor does not have `batch_size` rows but another part of the batch does (boxes before their images,
    time before batch), the other part counts. What classes of the program hold counts as such a part only. A list of
    `batch_size` dictionaries, or of as many tensors that don't have `batch_size` rows, holds one for each sample
    (detection).
    """
    if isinstance(batch, torch.Tensor):
        return float(batch.shape[0]) if batch.dim() else 1.0
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(graphs, int):
        return float(graphs)
    if depth < 4:
        values: Any = None
        if isinstance(batch, dict) or hasattr(batch, "values"):
            values = list(batch.values()) if callable(getattr(batch, "values", None)) else None
        elif isinstance(batch, (list, tuple)):
            values = batch
        if isinstance(batch, (list, tuple)) and _one_a_sample(batch, batch_size, depth):
            return float(len(batch))
        parts = [value for value in values or () if not isinstance(value, (int, float, str, bytes))]
        known = (part for part in parts if isinstance(part, (torch.Tensor, dict, list, tuple)))
        found = [
            batch_samples(part, batch_size, depth + 1)
            for part in itertools.islice(known, _MOST_PARTS if depth < 2 else 1)
        ]
        holders = [batch] if values is None else parts[:_MOST_PARTS]
        held = (each for part in holders for each in _held(part) if isinstance(each, torch.Tensor))
        if batch_size in found or any(each.dim() and each.shape[0] == batch_size for each in held):
            return float(batch_size or 1)
        if found:
            return found[0]
        if values and all(isinstance(value, (int, float, str, bytes)) for value in values):
            return float(len(values))
    return 1.0


def batch_elements(batch: Any) -> int:
    """Elements of all tensors in a batch, nested up to four deep, as far as they are found among its first thousand
    parts; 0 if that can't be told."""
    try:
        return _elements(batch, 0, iter(range(_MOST_COUNTED)))
    except Exception:
        return 0  # A batch unlike any. The count makes figures surer, and must break nothing.


def _elements(batch: Any, depth: int, parts_left: Iterator[int]) -> int:
    if isinstance(batch, torch.Tensor):
        return batch.numel()
    if depth >= 4 or isinstance(batch, (int, float, str, bytes)):
        return 0
    parts: Any = batch if isinstance(batch, (list, tuple)) else None
    if parts is None:
        # Batches of graphs keep their tensors in stores.
        stores, values = getattr(batch, "stores", None), getattr(batch, "values", None)
        parts = stores if isinstance(stores, list) else values() if callable(values) else _held(batch)
    return sum(_elements(part, depth + 1, parts_left) for part, _ in zip(parts, parts_left))


def _held(part: Any) -> List[Any]:
    """What an object of the program's holds itself that may be of tensors, such as pictures and their mask."""
    if isinstance(part, (torch.Tensor, dict, list, tuple)):
        return []
    return [
        each for each in (own_attributes(part) or {}).values() if isinstance(each, (torch.Tensor, dict, list, tuple))
    ]


def _one_a_sample(values: Sequence[Any], batch_size: Optional[int], depth: int) -> bool:
    """Whether parts of a batch are one for each sample. A batch of two parts may be two tensors, or a tuple of two
    dictionaries, whatever its size; and the last one of an epoch may be shorter than others."""
    dictionaries = all(isinstance(value, dict) for value in values)
    if len(values) != batch_size:
        return bool(depth) and dictionaries and 0 < len(values) < (batch_size or 0)
    if dictionaries:
        return bool(depth) or isinstance(values, list)
    tensors = bool(depth) and all(isinstance(value, torch.Tensor) for value in values)
    return tensors and any(value.dim() == 0 or value.shape[0] != len(values) for value in values)


def tensors_of(batch: Any, depth: int = 0) -> List[torch.Tensor]:
    """The tensors of a batch, nested up to four deep."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    if depth >= 4:
        return []
    values: Any = ()
    if isinstance(batch, dict):
        values = batch.values()
    elif isinstance(batch, (list, tuple)):
        values = batch
    return [tensor for value in values for tensor in tensors_of(value, depth + 1)]
