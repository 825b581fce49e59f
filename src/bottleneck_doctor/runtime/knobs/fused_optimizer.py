"""`fused_optimizer`: torch's own optimizers step with one fused operation for each group, if there is one for their
class and device. The effect is checked in each step by the groups that torch goes through.

The fused operation needs its step counter on the device of the parameter. If the user's counter is elsewhere, it is
moved there for the window, and its value is put back into the user's own tensor afterwards.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Dict, List, Optional, Tuple

import torch

from . import GuestContext
from ._implementation import Implementation
from ._optimizers import all_fusible, has_tensors, unknown

_ABSENT = object()
_SCALES = "_step_supports_amp_scaling"
_CLIP_THEMSELVES = ("lightning", "pytorch_lightning", "lightning_fabric")
"""Libraries that ask an optimizer whether it scales gradients itself, and then refuse to clip them."""


class FusedOptimizer(Implementation):
    name = "fused_optimizer"
    flags: ClassVar[Dict[str, Optional[bool]]] = {"fused": True, "foreach": False}

    def __init__(self) -> None:
        super().__init__()
        self._states: Dict[int, Tuple[Any, int]] = {}
        """The state of each optimizer, and how many parameters it held when step counters were last moved."""
        self._counts: List[Tuple[Any, torch.Tensor]] = []
        """States of parameters, with the user's own step counter that was taken out."""
        self._scales: List[Tuple[Any, Any]] = []

    @classmethod
    def fits(cls, kind: type, group: Dict[str, Any]) -> bool:
        plain = not group.get("differentiable") and not has_tensors(group)
        return plain and not group.get("fused") and all_fusible(kind, group["params"])

    @classmethod
    def refusal(cls, optimizer: Any) -> str:
        reason = unknown(optimizer)
        if reason:
            return reason
        groups = [each for each in optimizer.param_groups if not each.get("fused")]
        if not groups:
            return "already on: the optimizer is fused"
        if any(cls.fits(type(optimizer), each) for each in groups):
            return ""
        if any(each.get("differentiable") for each in groups):
            return "gradients flow through the optimizer's step"
        if any(has_tensors(each) for each in groups):
            return "a hyperparameter of the optimizer is a tensor"
        return f"torch {torch.__version__} has no fused `{type(optimizer).__name__}` for these parameters"

    def apply(self, value: Any, context: GuestContext) -> None:
        super().apply(value, context)
        if context.steps.user_scaler and not any(name in sys.modules for name in _CLIP_THEMSELVES):
            for optimizer in self._touched:
                # A fused step takes the scale out by itself, and the scaler need not wait for whether all is finite.
                if all(self.fits(type(optimizer), each) or each.get("fused") for each in optimizer.param_groups):
                    self._scales.append((optimizer, vars(optimizer).get(_SCALES, _ABSENT)))
                    setattr(optimizer, _SCALES, True)

    def revert(self, context: GuestContext) -> None:
        while self._scales:
            optimizer, before = self._scales.pop()
            if before is _ABSENT:
                vars(optimizer).pop(_SCALES, None)
            else:
                setattr(optimizer, _SCALES, before)
        super().revert(context)
        self._counts.clear()
        self._states.clear()

    def prepare(self, optimizer: Any) -> None:
        self._states[id(optimizer)] = optimizer.state, len(optimizer.state)
        for group in optimizer.param_groups:
            if self.fits(type(optimizer), group):
                for parameter in group["params"]:
                    self._move_count(optimizer.state.get(parameter), parameter)

    def _move_count(self, state: Any, parameter: torch.Tensor) -> None:
        count = state.get("step") if isinstance(state, dict) else None
        if isinstance(count, torch.Tensor) and not _beside(count, parameter):
            self._counts.append((state, count))
            state["step"] = count.to(device=parameter.device, dtype=torch.float32)

    def step_begins(self, optimizer: Any) -> None:
        super().step_begins(optimizer)
        state, held = self._states.get(id(optimizer), (None, 0))
        if state is not optimizer.state or held != len(optimizer.state):
            self.prepare(optimizer)  # A checkpoint was loaded, or there are more parameters.

    def can_step(self, group: Dict[str, Any], told: Any, lists: Tuple[Any, ...]) -> bool:
        if told is True or (isinstance(told, tuple) and any(told)):
            return False  # Sparse gradients, or complex parameters.
        if "momentum" in group:
            # A fused step would begin them all, or none.
            return not group["momentum"] or all(each is not None for each in lists[-1])
        return lists[0][0].is_cpu or all(map(_beside, lists[-1], lists[0]))

    def put_back(self, optimizer: Any) -> None:
        own = {id(state): count for state, count in self._counts}
        for group in optimizer.param_groups:
            if group.get("fused") or group.get("capturable"):
                continue
            for parameter in group["params"]:
                state = optimizer.state.get(parameter)
                count = state.get("step") if isinstance(state, dict) else None
                if not isinstance(count, torch.Tensor):
                    continue
                kept = own.get(id(state))
                if kept is not None:
                    kept.copy_(count)
                    state["step"] = kept
                elif not count.is_cpu or count.dtype is not _count_type():
                    state["step"] = count.to(device="cpu", dtype=_count_type())


def _beside(count: torch.Tensor, parameter: torch.Tensor) -> bool:
    return count.device == parameter.device and count.dtype is torch.float32


def _count_type() -> torch.dtype:
    """The type of the step counter of an optimizer that isn't fused."""
    return torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32


KNOB = FusedOptimizer
