"""`no_sync`: ranks exchange gradients once for each update, in the last of its backward passes. The effect is checked
by the number of passes that exchanged nothing.

DistributedDataParallel reads a flag of the model before each forward pass, and exchanges gradients in the backward pass
if it is set. Gradients that were not exchanged add up in each rank, and the next exchange takes all of them. The user's
own `no_sync()` sets the same flag. Where an update turns out to have fewer passes than those before it, as at the end
of an epoch, its gradients are exchanged before the optimizer's step.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import torch

from ..loop.steps import Steps
from ..process.hook import Hook
from . import GuestContext, Knob, Refused
from ._exchange import NONE, exchanging

NAME = "no_sync"
MOST_NOTED = 4096


class NoSync(Knob):
    name = NAME

    def __init__(self) -> None:
        self._steps: Any = None
        self._model: Any = None
        self._passes = 0
        self._hooks: List[Any] = []
        self._update: Optional[int] = None
        self._made = 0
        """Backward passes before this update."""
        self._whole = False
        """Whether this update was seen from its first pass."""
        self._wait = False
        """Whether gradients of this rank were added up since the last exchange."""
        self._kept = 0
        self._ends = False
        """Whether the window is over, and only what waits is left to do."""

    # -- before the loop is found ------------------------------------------------------------------------------------

    @classmethod
    def watch(cls, steps: Steps) -> None:
        def begins() -> None:
            model = exchanging(steps)
            if model is None:
                return
            seen = _seen(steps)
            if len(seen) < MOST_NOTED:
                # One that is a part of another has the number of that other.
                flag = bool(model.require_backward_grad_sync)
                seen.setdefault(steps.own_backwards, (steps.optimizer_steps, flag))

        steps.on_backward = begins

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        steps.on_backward = None
        passes = _passes_of_update(steps)
        return {"passes": passes} if passes else None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is None:
            return NONE
        if len(steps.optimizers) != 1:
            return "several optimizers share its backward passes"
        if getattr(model, "static_graph", False):
            return "the model was made with `static_graph=True`, and has to exchange the same gradients in each step"
        if getattr(getattr(model, "_join_config", None), "enable", False):
            return "ranks may run out of batches at different times (`join`)"
        passes = _passes_of_update(steps)
        if passes == 0:
            return "it is not known how many backward passes an update takes"
        if passes == 1:
            return "each backward pass is followed by an update"
        if not all(map(all, _whole_updates(steps))):
            return "already on: some backward passes exchange no gradients"
        return ""

    # -- in a window -------------------------------------------------------------------------------------------------

    def apply(self, value: Any, context: GuestContext) -> None:
        if not value:
            return
        steps = self._steps = context.steps
        self._model = exchanging(steps)
        self._passes = _passes_of_update(steps)
        if self._model is None or self._passes < 2:
            raise Refused("no update of several backward passes was seen")
        self._hooks = [
            self._model.register_forward_pre_hook(Hook(self._forward_begins)),
            *(optimizer.register_step_pre_hook(Hook(self._update_ends)) for optimizer in steps.optimizers),
        ]

    def revert(self, context: GuestContext) -> None:
        self._ends = True
        if self._model is not None:
            self._model.require_backward_grad_sync = True
        if not self._wait:
            self._remove()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        if self._kept:
            return True
        return False if self._whole else None

    def _forward_begins(self, module: Any, args: Any) -> None:
        if self._ends and not self._wait:
            self._remove()
            return
        if not torch.is_grad_enabled():
            return
        steps = self._steps
        if steps.optimizer_steps != self._update:
            self._whole = self._update is not None
            self._update, self._made = steps.optimizer_steps, steps.own_backwards
        exchange = self._ends or not self._whole or steps.own_backwards - self._made >= self._passes - 1
        module.require_backward_grad_sync = exchange
        self._wait = not exchange
        self._kept += not exchange

    def _update_ends(self, *ignored: Any) -> None:
        if self._wait:
            self._wait = False
            _exchange(self._model)
        # Not removed here, where torch goes through the hooks of the step: another may follow, and it would raise.

    def _remove(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


KNOB = NoSync


def _seen(steps: Steps) -> Dict[int, Tuple[int, bool]]:
    """Of each backward pass: how many updates were made before it, and whether it was to exchange gradients."""
    seen: Dict[int, Tuple[int, bool]] = steps.noted.setdefault(NAME, {})
    return seen


def _whole_updates(steps: Steps) -> List[List[bool]]:
    """Whether each backward pass was to exchange gradients, of those updates of which all passes were seen: models are
    known from the end of an update on."""
    updates: Dict[int, List[bool]] = {}
    for update, flag in _seen(steps).values():
        if update < steps.optimizer_steps:
            updates.setdefault(update, []).append(flag)
    return list(updates.values())


def _passes_of_update(steps: Steps) -> int:
    """Backward passes that most updates take; 0 if no update was seen."""
    counts = [len(flags) for flags in _whole_updates(steps)]
    return Counter(counts).most_common(1)[0][0] if counts else 0


def _exchange(model: Any) -> None:
    """Do what the backward pass left: replace the gradients of each rank by their mean."""
    group = model.process_group
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.requires_grad:
                continue
            # Another rank may have a gradient for what this one did not use.
            mean = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.distributed.all_reduce(mean, group=group)
            mean.div_(group.size())
            if parameter.grad is None and bool(mean.any()):
                parameter.grad = mean
