"""What a window counts of the modules that train, in a loop without a loader: how often they are called, where a loop
calls them more often in some steps, and how many elements they are given, where nobody else knows a batch's size."""

from __future__ import annotations

import weakref
from typing import Any, List, Sequence

import torch

from ..process.compiled import is_compiled_in_place
from ..process.hook import Hook
from .batches import batch_elements


class _Counts:
    """Counts between `begin` and `end`. The hooks on the modules are there for as long."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self.number = 0
        """What was counted so far, in this window and those before it."""
        self._roots = [weakref.ref(root) for root in roots]
        self._hooks: List[Any] = []

    def begin(self) -> None:
        alive = [root for root in (reference() for reference in self._roots) if root is not None]
        self._hooks = [self._hooked(root) for root in alive]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _hooked(self, root: Any) -> Any:
        raise NotImplementedError


class RootCalls(_Counts):
    """Calls of the modules."""

    def _hooked(self, root: Any) -> Any:
        return root.register_forward_pre_hook(Hook(self._count))

    def _count(self, module: Any, args: Any) -> None:
        self.number += 1


class RootInputs(_Counts):
    """Elements of what comes first in each call with gradients."""

    def _hooked(self, root: Any) -> Any:
        return root.register_forward_pre_hook(Hook(self._measure), with_kwargs=True)

    def _measure(self, module: Any, args: Any, kwargs: Any) -> None:
        if not torch.is_grad_enabled():
            return  # An evaluation, or a rollout.
        for value in (*args, *kwargs.values()):
            elements = batch_elements(value)
            if elements:
                # What comes behind may be the state of a recurrent network, which has the same size in every step.
                self.number += elements
                return


def measurable(roots: Sequence[Any]) -> bool:
    """Whether hooks on these modules change nothing: one that was compiled in place would be compiled again."""
    return not any(map(is_compiled_in_place, roots))
