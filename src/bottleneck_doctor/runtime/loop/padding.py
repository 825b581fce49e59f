"""How much of a batch is padding, as its attention mask says."""

from __future__ import annotations

from typing import Any, Iterable, List, NamedTuple, Optional

import torch

NAME = "attention_mask"
"""What tokenizers, and models that are called with their result, call it."""
_MOST_PARTS = 8
_INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Padding(NamedTuple):
    """Of one batch: the places of its rows, those of them that hold something, and those that would be left if every
    row were as long as the longest one."""

    places: int
    filled: int
    needed: int


def padding_of(batch: Any) -> Optional[Padding]:
    """None where the batch has no attention mask on the host: rows of zeros and ones, for rows of as many numbers.

    Never raises."""
    try:
        mask = mask_of(batch)
        return None if mask is None else _counted(mask)
    except Exception:  # It explains something, and must break nothing.
        return None


def _counted(mask: torch.Tensor) -> Padding:
    held = mask != 0
    used = held.any(0).nonzero()
    # Padding may stand before the rows, or behind them.
    longest = int(used[-1] - used[0]) + 1 if len(used) else 0
    return Padding(mask.numel(), int(held.sum()), longest * mask.shape[0])


def named_mask(batch: Any) -> Optional[torch.Tensor]:
    """The attention mask that a batch has by its name; None where it has none on the host. May raise."""
    named = _named(batch)
    return named if named is not None and _of_rows(named) and _zeros_and_ones(named) else None


def mask_of(batch: Any) -> Optional[torch.Tensor]:
    """The attention mask that a batch has on the host, by its name or by what it holds; None where it has none. May
    raise."""
    if _named(batch) is not None:
        return named_mask(batch)
    if not isinstance(batch, (list, tuple)):
        return None
    rows: List[torch.Tensor] = [each for each in batch if _of_rows(each)]
    for mask in rows:
        others = [each for each in rows if each is not mask and each.shape == mask.shape]
        if _zeros_and_ones(mask) and any(_pads(mask, other) for other in others):
            return mask
    return _first(map(_further_in, batch[:_MOST_PARTS]))


def _further_in(part: Any) -> Optional[torch.Tensor]:
    """The mask of a part of a batch: sentence-transformers has a list of texts' columns beside the labels."""
    if isinstance(part, (list, tuple)):
        return _first(map(named_mask, part[:_MOST_PARTS]))
    return named_mask(part)


def _first(masks: Iterable[Optional[torch.Tensor]]) -> Optional[torch.Tensor]:
    return next((mask for mask in masks if mask is not None), None)


def _named(batch: Any) -> Any:
    """What a dictionary, or a library's object that is like one, holds by the name."""
    if isinstance(batch, (torch.Tensor, list, tuple)) or not callable(getattr(batch, "keys", None)):
        return None
    try:
        return batch[NAME]
    except Exception:  # Whatever it is, it has no mask.
        return None


def _of_rows(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 2
        and value.numel() > 0
        and value.dtype in _INTEGERS
        and value.device.type == "cpu"
    )


def _zeros_and_ones(mask: torch.Tensor) -> bool:
    return mask.dtype == torch.bool or bool(((mask == 0) | (mask == 1)).all())


def _pads(mask: torch.Tensor, numbers: torch.Tensor) -> bool:
    """Whether `numbers` has one and the same number wherever the mask has a zero, and others beside it."""
    behind = numbers[mask == 0]
    if not len(behind):
        return False
    return bool((behind == behind[0]).all()) and bool((numbers != behind[0]).any())
