"""`trimmed_padding`: batches end where their longest row does, in place of going on with padding to a fixed length. The
effect is checked by the collate function that the window's loader has.

What is cut off must hold nothing: the attention mask is zero there, and every other tensor of as many columns holds one
and the same number. Where that number would count in the loss, the batch is left as it is. Padding before the rows
stays, since positions are counted from the first column.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch

from ..loop.padding import NAME as MASK
from ..loop.padding import named_mask
from ..loop.steps import Steps
from . import Knob, _seen_batches

NAME = "trimmed_padding"
MOST_SEEN = 32
"""So many batches are looked at, until the loop is found."""
IGNORED = -100
"""What torch's losses take for a place without a label."""
_PLACES = "position_ids"


class Cut(NamedTuple):
    """What could be cut off one batch: all `columns` behind `kept`, of the tensors with these `names`. `obstacle`: why
    it may not be, as the end of a sentence; "" if it may."""

    columns: int
    kept: int
    names: Tuple[str, ...]
    obstacle: str


class TrimmedPadding(Knob):
    name = NAME
    layer = "loader"

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        seen = _seen_batches.of_loader(steps, NAME, loader)
        if len(seen) < MOST_SEEN:
            cut = cut_of(batch)
            if cut is not None:
                seen.append(cut)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        seen = _seen_batches.taken(steps, NAME, loader)
        return _told(seen) if seen else None

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        if value:
            loader.__dict__["collate_fn"] = ToLongest(loader.collate_fn)

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else isinstance(loader.collate_fn, ToLongest) == bool(value)


class ToLongest:
    """A loader's collate function, and what it makes cut to the longest row. Workers get it with their loader."""

    def __init__(self, collate: Any) -> None:
        self._collate = collate

    def __call__(self, samples: Any) -> Any:
        return to_longest(self._collate(samples))


def to_longest(batch: Any) -> Any:
    """The batch, cut to its longest row; as it is where that may not be."""
    cut = cut_of(batch)
    if cut is not None and not cut.obstacle and cut.kept < cut.columns:
        for name in cut.names:
            # As a collate function would make it: workers hand over all that lies behind a view.
            batch[name] = batch[name][:, : cut.kept].contiguous()
    return batch


def cut_of(batch: Any) -> Optional[Cut]:
    """What could be cut off a batch; None where it has no attention mask. Never raises."""
    try:
        mask = named_mask(batch)
        return None if mask is None else _cut(batch, mask)
    except Exception:
        return None  # A batch unlike any.


def _cut(batch: Any, mask: torch.Tensor) -> Cut:
    _rows, columns = mask.shape
    used = (mask != 0).any(0).nonzero()
    kept = max(1, int(used[-1]) + 1) if len(used) else columns
    names: List[str] = []
    obstacle = ""
    for name in batch.keys():  # noqa: SIM118  (it need not be a dictionary)
        value = batch[name]
        if not isinstance(value, torch.Tensor):
            if not isinstance(value, (str, int, float, list, type(None))):
                obstacle = obstacle or f"`{name}` of a batch is no tensor"
            continue
        if columns not in value.shape[1:]:
            continue
        if value.dim() < 2 or value.shape[:2] != mask.shape or columns in value.shape[2:]:
            obstacle = obstacle or f"`{name}` of a batch has another form than its `{MASK}`"
            continue
        names.append(str(name))
        obstacle = obstacle or _behind(str(name), value[:, kept:])
    return Cut(columns, kept, tuple(names), obstacle)


def _behind(name: str, values: torch.Tensor) -> str:
    """Why what stands behind all rows may not be left out."""
    if name == _PLACES or not values.numel():
        return ""
    first = values.flatten()[0]
    if not bool((values == first).all()):
        return f"`{name}` of a batch holds something where its `{MASK}` says that nothing is"
    if "label" in name and first.item() != IGNORED:
        return f"the loss counts padding, too: `{name}` holds {first.item():g} there, and not {IGNORED}"
    return ""


def _told(seen: List[Cut]) -> Dict[str, Any]:
    """For the fix: an obstacle of any batch, the share of places that could be left out, and the names."""
    places = sum(cut.columns for cut in seen)
    return {
        "obstacle": next((cut.obstacle for cut in seen if cut.obstacle), ""),
        "share": 1.0 - sum(cut.kept for cut in seen) / places if places else 0.0,
        "names": list(seen[-1].names),
    }


KNOB = TrimmedPadding
