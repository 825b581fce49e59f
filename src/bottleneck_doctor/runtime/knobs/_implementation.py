"""Shared by the knobs that make torch's own optimizers use another implementation of the same class.

Groups are stepped as copies with other flags. Whether an implementation can do it is known only once torch has gathered
gradients and state. If it can't, the group is stepped as written, and the knob has not taken effect.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Tuple

import torch

from ._stand_in import Groups, StandIn

_WRITTEN = "_doctor_as_written"
"""The key under which a copy of a group keeps the user's `fused` and `foreach`."""
_MOST_JUDGED = 4096


class Implementation(StandIn):
    flags: ClassVar[Dict[str, Optional[bool]]]
    """The flags of the copies."""

    def __init__(self) -> None:
        super().__init__()
        self._judged: Dict[int, Tuple[List[Any], int, bool]] = {}
        self._scaling: Optional[Tuple[Any, Any]] = None

    @classmethod
    def fits(cls, kind: type, group: Dict[str, Any]) -> bool:
        """Whether a group of an optimizer of this class should and can be stepped in this way."""
        raise NotImplementedError

    def can_step(self, group: Dict[str, Any], told: Any, lists: Tuple[Any, ...]) -> bool:
        """Whether that is true for what torch has gathered of the group."""
        return True

    def groups(self, stand_in: Any, theirs: Groups) -> Groups:
        return [self._copy(type(stand_in), each) for each in theirs]

    def _copy(self, kind: type, group: Dict[str, Any]) -> Dict[str, Any]:
        parameters = group["params"]
        judged = self._judged.get(id(group))
        if judged is None or judged[0] is not parameters or judged[1] != len(parameters):
            if len(self._judged) > _MOST_JUDGED:
                self._judged.clear()  # Of groups that are made again for each step.
            base = next(each for each in kind.__mro__ if each.__module__.startswith("torch.optim"))
            judged = self._judged[id(group)] = (parameters, len(parameters), self.fits(base, group))
        if not judged[2]:
            return group
        return {**group, **self.flags, _WRITTEN: {name: group.get(name) for name in self.flags}}

    def step_begins(self, optimizer: Any) -> None:
        self._scaling = None

    def gathered(self, stand_in: Any, group: Dict[str, Any], told: Any, lists: Tuple[Any, ...]) -> None:
        if self._scaling is not None:
            stand_in.grad_scale, stand_in.found_inf = self._scaling
            self._scaling = None
        if _WRITTEN not in group or not lists[0]:
            return
        try:
            able = self.can_step(group, told, lists)
        except Exception:
            able = False  # What was gathered is unlike any known.
        self.note(able)
        if not able:
            group.update(group[_WRITTEN])
            self._unscaled(stand_in, group, lists)

    def _unscaled(self, stand_in: Any, group: Dict[str, Any], lists: Tuple[Any, ...]) -> None:
        """Before a step without gradient scaling: do what the scaler left for a fused step to do."""
        scale, overflow = vars(stand_in).get("grad_scale"), vars(stand_in).get("found_inf")
        if group.get("fused") or (scale is None and overflow is None):
            return
        self._scaling = (scale, overflow)  # For the groups to come.
        stand_in.grad_scale = stand_in.found_inf = None
        if overflow is not None and overflow.item():
            for each in lists:
                if isinstance(each, list):
                    each.clear()
        elif scale is not None:
            with torch.no_grad():
                for gradient in lists[1]:
                    gradient.mul_(scale.to(gradient.device).double().reciprocal().float())
