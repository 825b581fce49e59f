"""Whether a model that computes between steps keeps what a backward pass would need, which an evaluation needs not.

No hook is put on the user's modules, because a program may save or copy its model meanwhile, with all hooks. The calls
of all modules are watched instead, until a few of the model's own were seen.
"""

from __future__ import annotations

from typing import Any, Dict, List

import torch
from torch.utils.hooks import unserializable_hook

from ..process.compiled import compiled_graphs
from ..process.patches import Patches
from .batches import tensors_of
from .steps import Steps

MOST_PAUSES = 4
"""Pauses that are looked at: a program evaluates in the same way each time."""
MOST_PASSES = 4
"""Passes of a pause that are looked at."""


class _Pass:
    """A pass of the model: how many backward passes came before it, and whether its output can be differentiated."""

    def __init__(self, backwards: int, made: List[torch.Tensor]) -> None:
        self.backwards = backwards
        self.used = False
        """Whether a backward pass came to its output, where that was watched for."""
        self.graph = any(tensor.requires_grad for tensor in made)

    def watch(self, made: List[torch.Tensor]) -> None:
        """Note whether a backward pass comes to its output. A parameter that a model gives out gets no hook: it would
        keep it."""
        for tensor in made:
            if tensor.grad_fn is not None:
                tensor.register_hook(self._reached)  # type: ignore[no-untyped-call]

    @unserializable_hook  # type: ignore[untyped-decorator]  # torch warns of others where such a tensor is saved.
    def _reached(self, gradient: torch.Tensor) -> None:
        self.used = True


class Evaluated:
    """`passes`: how many of the model's passes from `begin` to `end` or `rest` were looked at; `with_graph`: those of
    them whose output could be differentiated, although no backward pass followed. `within_steps`: one follows in any
    case before `end`, and may differentiate what came out, or something else."""

    def __init__(self, steps: Steps, *, within_steps: bool = False) -> None:
        self.passes = 0
        self.with_graph = 0
        self._steps = steps
        self._within_steps = within_steps
        self._pauses = 0
        self._watches = False
        self._seen: List[_Pass] = []
        self._patches = Patches()

    def begin(self) -> None:
        """The loop makes no step for a while."""
        self.end()
        # What was compiled may have to be compiled again where the calls of modules change.
        if self._pauses >= MOST_PAUSES or not self._steps.roots or compiled_graphs():
            return
        self._pauses += 1
        self._watches = True
        self._patches.put(torch.nn.Module, "__call__", self._watching)

    def end(self) -> None:
        """The loop asks for its next batch, before anything else is switched. Costs nothing where nothing was begun."""
        if not self._watches and not self._seen:
            return
        self.rest()
        seen, self._seen = self._seen, []
        # What a backward pass followed was training: a loop that fetches ahead does its last step here.
        kept = [each for each in seen if not self._trains(each)]
        self.passes += len(kept)
        self.with_graph += sum(each.graph for each in kept)

    def _trains(self, each: _Pass) -> bool:
        return each.used if self._within_steps else each.backwards != self._steps.backwards

    def totals(self) -> Dict[str, int]:
        """As JSON values."""
        return {"passes": self.passes, "with_graph": self.with_graph}

    def rest(self) -> None:
        """No more passes are looked at; `end` says what became of those that were."""
        self._watches = False
        self._patches.take_off()

    def _watching(self, original: Any) -> Any:
        roots, is_compiling = {id(root) for root in self._steps.roots}, torch.compiler.is_compiling

        def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            made = original(module, *args, **kwargs)
            if id(module) in roots and not is_compiling() and self._watches:
                tensors = tensors_of(made)
                if tensors:
                    seen = _Pass(self._steps.backwards, tensors)
                    if self._within_steps:
                        seen.watch(tensors)
                    self._seen.append(seen)
                if len(self._seen) >= MOST_PASSES:
                    self.rest()
            return made

        return call
