"""`merged_groups`: groups of an optimizer's parameters that have equal hyperparameters are one group while it steps.
The effect is checked in each step by the number of groups that torch goes through.

Each parameter is stepped with its own gradient and state, so its group makes no difference as long as the
hyperparameters are equal. They are compared again in each step, because schedulers change them.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Callable, Dict, List, Tuple

import torch

from . import GuestContext
from ._optimizers import has_tensors, unknown
from ._stand_in import Groups, StandIn

_Values = Callable[[Dict[str, Any]], Tuple[Any, ...]]


class MergedGroups(StandIn):
    name = "merged_groups"

    def __init__(self) -> None:
        super().__init__()
        self._sparse = False
        """Whether some gradients may be sparse: a list of tensors with such a gradient is stepped in another way."""

    @classmethod
    def refusal(cls, optimizer: Any) -> str:
        reason = unknown(optimizer)
        if reason:
            return reason
        groups = optimizer.param_groups
        if len(groups) < 2:
            return "the optimizer has one group of parameters"
        if len(_merged(groups, [_key(_values_of(optimizer), each) for each in groups])) == len(groups):
            return "no two groups of the optimizer have the same hyperparameters"
        return ""

    def apply(self, value: Any, context: GuestContext) -> None:
        self._sparse = any(getattr(each, "sparse", False) for root in context.steps.roots for each in root.modules())
        super().apply(value, context)

    def prepare(self, optimizer: Any) -> None:
        self._sparse = self._sparse or any(map(_has_sparse, optimizer.param_groups))

    def groups(self, stand_in: Any, theirs: Groups) -> Groups:
        values = _values_of(stand_in)
        keys = [_key(values, each) for each in theirs]
        for place, group in enumerate(theirs):
            if (self._sparse and _has_sparse(group)) or not _has_begun(stand_in, group):
                keys[place] = object()
        merged = _merged(theirs, keys)
        self.note(len(merged) < len(theirs))
        return merged


def _values_of(optimizer: Any) -> _Values:
    """A function that reads the hyperparameters of a group that the optimizer's class knows. All others are the user's,
    and the step does not read them."""
    return itemgetter(*(name for name in optimizer.defaults if name != "params"))


def _key(values: _Values, group: Dict[str, Any]) -> Any:
    """A key that is equal for groups that may be merged."""
    try:
        found = values(group)
        hash(found)
    except (KeyError, TypeError):
        return object()
    return found


def _merged(groups: Groups, keys: List[Any]) -> Groups:
    alike: Dict[Any, Groups] = {}
    for group, key in zip(groups, keys):
        alike.setdefault(key, []).append(group)
    return [made for each in alike.values() for made in _one(each)]


def _one(groups: Groups) -> Groups:
    """Merge groups with equal hyperparameters. A tensor among these may differ for each group, so it prevents
    merging."""
    if len(groups) == 1 or has_tensors(groups[0]):
        return groups
    return [{**groups[0], "params": [parameter for group in groups for parameter in group["params"]]}]


def _has_sparse(group: Dict[str, Any]) -> bool:
    return any(each.grad is not None and each.grad.layout is not torch.strided for each in group["params"])


def _has_begun(stand_in: Any, group: Dict[str, Any]) -> bool:
    """Whether a group can be fused with others: a fused step starts the momentum of all parameters, or of none."""
    if not group.get("fused") or not group.get("momentum"):
        return True
    state = stand_in.state
    return all(
        each.grad is None or (each in state and state[each].get("momentum_buffer") is not None)
        for each in group["params"]
    )


KNOB = MergedGroups
