"""`unfused_optimizer`: torch's own optimizers that are fused step as they do by default. The effect is checked in each
step by the groups that torch goes through.

On CPUs alone: on a GPU, a fused step keeps its counter on the device, where another one would wait for it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Optional

from ._implementation import Implementation
from ._optimizers import all_plain, has_tensors, unknown
from ._stand_in import Groups


class UnfusedOptimizer(Implementation):
    name = "unfused_optimizer"
    flags: ClassVar[Dict[str, Optional[bool]]] = {"fused": None, "foreach": None}

    @classmethod
    def fits(cls, kind: type, group: Dict[str, Any]) -> bool:
        plain = not group.get("capturable") and not has_tensors(group) and all_plain(group["params"])
        return bool(group.get("fused")) and plain and all(each.is_cpu for each in group["params"])

    @classmethod
    def refusal(cls, optimizer: Any) -> str:
        reason = unknown(optimizer)
        if reason:
            return reason
        groups = [each for each in optimizer.param_groups if each.get("fused")]
        if not groups:
            return "the optimizer is not fused"
        if any(cls.fits(type(optimizer), each) for each in groups):
            return ""
        return "its parameters are on another device than the CPU, or it holds something other than plain tensors"

    def groups(self, stand_in: Any, theirs: Groups) -> Groups:
        if vars(stand_in).get("grad_scale") is not None:
            self.note(False)  # A scaler has left its scale to the fused step.
            return theirs
        return super().groups(stand_in, theirs)


KNOB = UnfusedOptimizer
