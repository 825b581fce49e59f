"""`foreach_optimizer`: torch's own optimizers step with operations on lists of tensors, instead of tensor by tensor in
Python. The effect is checked in each step by the groups that torch goes through."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Optional

from ._implementation import Implementation
from ._optimizers import all_plain, has_tensors, is_foreach, unknown


class ForeachOptimizer(Implementation):
    name = "foreach_optimizer"
    flags: ClassVar[Dict[str, Optional[bool]]] = {"foreach": True, "fused": False}

    @classmethod
    def fits(cls, kind: type, group: Dict[str, Any]) -> bool:
        plain = not group.get("differentiable") and not has_tensors(group) and all_plain(group["params"])
        return plain and not group.get("fused") and not is_foreach(group)

    @classmethod
    def refusal(cls, optimizer: Any) -> str:
        reason = unknown(optimizer)
        if reason:
            return reason
        if any(cls.fits(type(optimizer), each) for each in optimizer.param_groups):
            return ""
        if all(each.get("fused") or is_foreach(each) for each in optimizer.param_groups):
            return "already on: the optimizer runs its operations on lists of tensors"
        return "gradients flow through the optimizer's step, or it holds something other than plain tensors"


KNOB = ForeachOptimizer
