"""`zero_grad_none`: gradients that the user's program fills with zeros are set to `None` instead. The effect is checked
by the calls that clear them, and by whether each parameter then gets a gradient before the optimizer's step."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from ..loop.steps import Steps
from ..loop.zero_grads import OWNERS, fills, parameters_of
from . import GuestContext, Knob

_CAPTURED = "the optimizer may be captured in a CUDA graph, which keeps its gradients where they are"


class ZeroGradNone(Knob):
    name = "zero_grad_none"

    def __init__(self) -> None:
        self._put: List[Tuple[Any, Any, Any]] = []
        self._looks: List[Any] = []
        self._had: Dict[int, Any] = {}
        """Parameters of the loop that had a gradient when the window began, by id."""
        self._ours: Dict[int, bool] = {}
        """Whether all parameters that the owner of a call clears are among them."""
        self._cleared: Set[int] = set()
        self._held: Optional[bool] = None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        groups = [group for optimizer in steps.optimizers for group in optimizer.param_groups]
        return steps.zero_grads.obstacle() or (_CAPTURED if any(each.get("capturable") for each in groups) else "")

    def apply(self, value: Any, context: GuestContext) -> None:
        reason = self.obstacle(context.steps)
        if reason:
            raise ValueError(reason)
        for owner in (*context.steps.optimizers, *context.steps.roots):
            self._had.update({id(each): each for each in parameters_of(owner) if each.grad is not None})
        for owner in OWNERS:
            original = owner.zero_grad
            replacement = self._replaced(original)
            self._put.append((owner, original, replacement))
            owner.zero_grad = replacement
        for optimizer in context.steps.optimizers:
            self._looks.append(optimizer.register_step_pre_hook(self._look))

    def timed_part_begins(self, context: GuestContext) -> None:
        while self._looks:
            self._looks.pop().remove()

    def revert(self, context: GuestContext) -> None:
        self.timed_part_begins(context)
        while self._put:
            owner, original, replacement = self._put.pop()
            if vars(owner).get("zero_grad") is replacement:
                owner.zero_grad = original
        while self._had:
            _, parameter = self._had.popitem()
            if parameter.grad is None:
                # Where nothing came since they were cleared, the user's program would find zeros.
                parameter.grad = torch.zeros_like(parameter, requires_grad=False)
        self._ours.clear()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._held

    def _replaced(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if self._put and fills(args, kwargs) and self._clears(owner):
                return original(owner, set_to_none=True)
            return original(owner, *args, **kwargs)

        return zero_grad

    def _clears(self, owner: Any) -> bool:
        """Whether this owner's gradients are those of the loop. All other gradients are cleared as written."""
        known = self._ours.get(id(owner))
        if known is None:
            theirs = [each for each in parameters_of(owner) if each.grad is not None]
            if not theirs:
                return False
            known = self._ours[id(owner)] = all(id(each) in self._had for each in theirs)
        if known and self._looks:
            self._cleared.update(id(each) for each in parameters_of(owner) if each.grad is not None)
        return known

    def _look(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        here = {id(each): each for each in parameters_of(optimizer)}
        cleared = self._cleared & here.keys()
        self._cleared -= cleared
        if cleared:
            whole = all(here[each].grad is not None for each in cleared)
            self._held = whole and self._held is not False


KNOB = ZeroGradNone
