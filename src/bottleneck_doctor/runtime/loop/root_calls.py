"""What a window counts of the modules that train, in a loop without a loader: how often they are called, where a loop
calls them more often in some steps, and how many elements they are given, where nobody else knows a batch's size."""

from __future__ import annotations

import weakref
from typing import Any, List, Sequence

import torch

from .batches import batch_elements

# One list each, and functions of the module: hooks on a model that the user saves must be found by their name.
_called = [0]
_given = [0]


def _count(module: Any, args: Any) -> None:
    _called[0] += 1


def _measure(module: Any, args: Any, kwargs: Any) -> None:
    if not torch.is_grad_enabled():
        return  # An evaluation, or a rollout.
    for value in (*args, *kwargs.values()):
        elements = batch_elements(value)
        if elements:
            # What comes behind may be the state of a recurrent network, which has the same size in every step.
            _given[0] += elements
            return


class _Counts:
    """Counts between `begin` and `end`. The hooks on the modules are there for as long."""

    counter: List[int]

    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = [weakref.ref(root) for root in roots]
        self._hooks: List[Any] = []

    @property
    def number(self) -> int:
        """What was counted so far, in this window and those before it."""
        return self.counter[0]

    def begin(self) -> None:
        alive = [root for root in (reference() for reference in self._roots) if root is not None]
        self._hooks = [self.hooked(root) for root in alive]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def hooked(self, root: Any) -> Any:
        raise NotImplementedError


class RootCalls(_Counts):
    """Calls of the modules."""

    counter = _called

    def hooked(self, root: Any) -> Any:
        return root.register_forward_pre_hook(_count)


class RootInputs(_Counts):
    """Elements of what comes first in each call with gradients."""

    counter = _given

    def hooked(self, root: Any) -> Any:
        return root.register_forward_pre_hook(_measure, with_kwargs=True)


def measurable(roots: Sequence[Any]) -> bool:
    """Whether hooks on these modules change nothing: one that was compiled in place would be compiled again."""
    return all(getattr(root, "_compiled_call_impl", None) is None for root in roots)
