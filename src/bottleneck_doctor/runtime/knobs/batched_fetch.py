"""`batched_fetch`: takes whole batches out of a dataset with one list of indices, instead of row by row with a collate
function that stacks the rows. The effect is checked by how the window's loader asks its dataset.

The loader is the one that a user would write, `DataLoader(dataset, sampler=BatchSampler(...), batch_size=None)`, made
of torch's own parts, so it works the same in workers. A dataset that reads rows only by an index into tensors and
arrays gives exactly the same batch for a list of indices. This is known for torch's own datasets, and read from the
source of others. Both ways are compared before the knob relies on it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import weakref
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data._utils.collate import default_collate, default_convert
from torch.utils.data.distributed import DistributedSampler

from ..loop.batches import tensors_of
from ..loop.own_dataset import own_dataset
from ..loop.steps import Steps
from . import Knob

NAME = "batched_fetch"
MOST_ROWS = 256
MOST_BYTES = 16 << 20
"""At most this many rows of a batch are compared; more rows would say no more."""
_SAMPLERS = (DistributedSampler, RandomSampler, SequentialSampler, WeightedRandomSampler)
"""Samplers whose indices are plain integers, so that a list of them is an index of one dimension."""

_compared: List[Tuple[Any, bool]] = []
"""For each dataset, held weakly, whether both ways gave the same batch."""
_MOST_COMPARED_DATASETS = 4


class BatchedFetch(Knob):
    name = NAME
    layer = "loader"

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        return None if loader is None else obstacle(loader)

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        if value and not obstacle(loader):
            values = loader.__dict__
            values["sampler"], values["batch_sampler"] = loader.batch_sampler, None
            values["collate_fn"] = default_convert

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        loader = getattr(feed, "loader", None)
        return None if loader is None else loader._auto_collation != bool(value)


# -- which loaders -----------------------------------------------------------------------------------------------------


def obstacle(loader: Any) -> str:
    """Why this loader's batches can't be fetched as a whole, as the end of a sentence; "" if they can."""
    dataset = own_dataset(loader)
    if isinstance(dataset, IterableDataset):
        return "an iterable dataset has no rows that could be taken by index"
    if not loader._auto_collation:
        return "already on: the loader asks its dataset for whole batches"
    inner = inside_subsets(dataset)
    if callable(getattr(inner, "__getitems__", None)):
        return f"already on: `{type(inner).__name__}` fetches whole batches itself, by `__getitems__`"
    if loader.collate_fn is not default_collate:
        return "the loader's `collate_fn` is not torch's own, so it may do more than stack rows"
    if not _gives_plain_lists(loader.batch_sampler):
        return "the loader's sampler is not one of torch's, so its indices may not be plain numbers"
    if getattr(loader, "batch_size", None) == 1:
        return "a batch has only one row"
    if not reads_rows(inner):
        return f"`{type(inner).__name__}` does more than read rows of tensors or arrays by their index"
    if not _compares(dataset, getattr(loader, "batch_size", None) or 1):
        return f"`{type(inner).__name__}` returns other batches for a list of indices than row by row"
    return ""


def inside_subsets(dataset: Any) -> Any:
    """The dataset that a `Subset` takes its rows from, or subsets of subsets do."""
    while (
        isinstance(dataset, Subset)
        and type(dataset).__getitem__ is Subset.__getitem__
        and getattr(type(dataset), "__getitems__", None) is getattr(Subset, "__getitems__", None)
        and _plain(dataset.indices)
    ):
        dataset = dataset.dataset
    return dataset


def _plain(indices: Any) -> bool:
    """Whether indices are numbers: a short list of tensors would be an index of several dimensions."""
    if isinstance(indices, range):
        return True
    return type(indices) in (list, tuple) and not any(isinstance(index, torch.Tensor) for index in indices)


def _gives_plain_lists(sampler: Any) -> bool:
    if type(sampler) is not BatchSampler:
        return False
    rows: Any = sampler.sampler
    return type(rows) in _SAMPLERS or (type(rows) is SubsetRandomSampler and _plain(rows.indices))


def reads_rows(dataset: Any) -> bool:
    """Whether it only indexes tensors and arrays that it holds."""
    return _reads_tensors(dataset) or _reads_arrays(dataset)


def _reads_tensors(dataset: Any) -> bool:
    return isinstance(dataset, TensorDataset) and type(dataset).__getitem__ is TensorDataset.__getitem__


# -- datasets of the user's own ----------------------------------------------------------------------------------------


def _reads_arrays(dataset: Any) -> bool:
    """Whether, according to its source, `__getitem__` only indexes tensors and arrays that the dataset holds."""
    getter = getattr(type(dataset), "__getitem__", None)
    if not inspect.isfunction(getter) or hasattr(getter, "__wrapped__"):
        return False
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(getter))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or function.name != "__getitem__":
        return False
    given = function.args
    if len(given.args) != 2 or given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        return False
    held = _rows_read(function.body, given.args[0].arg, given.args[1].arg)
    return bool(held) and all(_holds_rows(dataset, name) for name in held)


def _rows_read(body: List[ast.stmt], this: str, index: str) -> List[str]:
    """The attributes from which a body reads a row; empty if it reads none, or does anything else."""
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # Its docstring.
    held: List[str] = []
    rows: Dict[str, str] = {}

    def read(node: Optional[ast.expr]) -> bool:
        """A row, or a container of rows."""
        if isinstance(node, ast.Name):
            return node.id in rows
        if isinstance(node, (ast.Tuple, ast.List)):
            return bool(node.elts) and all(map(read, node.elts))
        if isinstance(node, ast.Dict):
            keys = all(isinstance(key, ast.Constant) for key in node.keys)
            return bool(node.values) and keys and all(map(read, node.values))
        name = attribute(node)
        held.append(name)
        return bool(name)

    def attribute(node: Optional[ast.expr]) -> str:
        """`x` of `self.x[index]`; "" for anything else."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
            return ""
        owner, at = node.value.value, node.slice
        plain = isinstance(owner, ast.Name) and owner.id == this and isinstance(at, ast.Name) and at.id == index
        return node.value.attr if plain else ""

    for statement in body[:-1]:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return []
        target, name = statement.targets[0], attribute(statement.value)
        if not isinstance(target, ast.Name) or target.id in (this, index) or not name:
            return []
        rows[target.id] = name
        held.append(name)
    last = body[-1] if body else None
    return held if isinstance(last, ast.Return) and read(last.value) else []


def _holds_rows(dataset: Any, name: str) -> bool:
    """Whether an attribute is a tensor or an array with rows, and no property or similar."""
    if hasattr(type(dataset), name):
        return False
    value = vars(dataset).get(name)
    if type(value) is torch.Tensor:
        return value.dim() > 0
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap) and value.ndim > 0


# -- whether both ways give the same -----------------------------------------------------------------------------------


def _compares(dataset: Any, size: int) -> bool:
    for reference, same in _compared:
        if reference() is dataset:
            return same
    same = _gives_the_same(dataset, min(size, MOST_ROWS))
    try:
        _compared.append((weakref.ref(dataset), same))
        del _compared[:-_MOST_COMPARED_DATASETS]
    except TypeError:
        pass
    return same


def _gives_the_same(dataset: Any, size: int) -> bool:
    """Batches of one row, of two in reverse order, and of `size` rows from all over the dataset (fewer if rows are
    large)."""
    try:
        count = len(dataset)
        for indices in ([count - 1], [count - 1, 0]):
            if not _same_for(dataset, indices):
                return False
        tensors = tensors_of(default_convert(dataset[[0]]))  # type: ignore[no-untyped-call]
        row = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        size = min(size, max(2, MOST_BYTES // max(1, row)))
        return _same_for(dataset, [(place * 7919) % count for place in range(size)])
    except Exception:  # It takes no list, or has no rows.
        return False


def _same_for(dataset: Any, indices: List[int]) -> bool:
    one_by_one: Any = default_collate([dataset[index] for index in indices])  # type: ignore[no-untyped-call]
    return same_batch(one_by_one, default_convert(dataset[indices]))  # type: ignore[no-untyped-call]


def same_batch(one: Any, other: Any) -> bool:
    """Whether two batches are exactly equal: containers, types, layout and values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        alike = (one.dtype, one.shape, one.stride(), one.device, one.layout, one.requires_grad) == (
            other.dtype, other.shape, other.stride(), other.device, other.layout, other.requires_grad
        )  # fmt: skip
        # By bytes: a NaN is the same as itself.
        return alike and torch.equal(_bytes(one), _bytes(other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_batch(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same_batch, one, other))
    return False


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().contiguous().flatten()
    if flat.stride(0) != 1:  # As of one element of a column, whose stride says nothing.
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8)


KNOB = BatchedFetch
