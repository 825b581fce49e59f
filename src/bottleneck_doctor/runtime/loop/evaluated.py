"""Whether a model that computes between steps keeps what a backward pass would need, which an evaluation needs not.

No hook is put on the user's modules, because a program may save or copy its model meanwhile, with all hooks. The calls
of all modules are watched instead, until a few of the model's own were seen.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from ..process.compiled import compiled_graphs
from ..process.patches import Patches
from .batches import tensors_of
from .steps import Steps

MOST_PAUSES = 4
"""Pauses that are looked at: a program evaluates in the same way each time."""
MOST_PASSES = 4
"""Passes of a pause that are looked at."""


class Evaluated:
    """`passes`: how many of the model's passes from `begin` to `end` were looked at; `with_graph`: those of them whose
    output could be differentiated, although no backward pass followed."""

    def __init__(self, steps: Steps) -> None:
        self.passes = 0
        self.with_graph = 0
        self._steps = steps
        self._pauses = 0
        self._watches = False
        self._seen: List[Tuple[int, bool]] = []
        """Backward passes so far at a pass of the model, and whether its output could be differentiated."""
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
        self._take_off()
        seen, self._seen = self._seen, []
        # What a backward pass followed was training: a loop that fetches ahead does its last step here.
        kept = [graph for backwards, graph in seen if backwards == self._steps.backwards]
        self.passes += len(kept)
        self.with_graph += sum(kept)

    def totals(self) -> Dict[str, int]:
        """As JSON values."""
        return {"passes": self.passes, "with_graph": self.with_graph}

    def _take_off(self) -> None:
        self._watches = False
        self._patches.take_off()

    def _watching(self, original: Any) -> Any:
        roots, is_compiling = {id(root) for root in self._steps.roots}, torch.compiler.is_compiling

        def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            made = original(module, *args, **kwargs)
            if id(module) in roots and not is_compiling() and self._watches:
                graph = _has_graph(made)
                if graph is not None:
                    self._seen.append((self._steps.backwards, graph))
                if len(self._seen) >= MOST_PASSES:
                    self._take_off()
            return made

        return call


def _has_graph(made: Any) -> Optional[bool]:
    """Whether what a model returned could be differentiated; None if no tensor is seen in it."""
    tensors = tensors_of(made)
    return any(tensor.requires_grad for tensor in tensors) if tensors else None
