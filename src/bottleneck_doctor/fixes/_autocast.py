"""What the two autocast fixes share: when mixed precision can be tried from outside."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import NotApplicable, Offer, Part
from bottleneck_doctor.knobs import autocast, float32_precision
from bottleneck_doctor.runtime.wire.messages import Found

AUTOCAST_PARTS: tuple[Part, ...] = ("forward", "between", "backward")
"""A loss that a plain function makes lies between the two passes."""


def propose_autocast(found: Found, dtype: str) -> Offer | NotApplicable:
    """Offer autocast with `dtype` unless the user's own is on or there is no module to put it around."""
    if found.autocast:
        return NotApplicable(f"already on: the forward pass runs under autocast ({found.autocast})")
    if found.grad_scaler:
        return NotApplicable("the script scales its gradients itself")
    if not found.has_root_module and found.rung not in ("optimizer step", "gradient scaler"):
        return NotApplicable("no call of a module with trainable parameters was seen")
    if not found.has_root_module:
        return NotApplicable("no call of a module whose parameters the optimizer holds was seen")
    if float32_precision.in_float64(found) == 1:
        return NotApplicable("the model computes in float64, which autocast leaves as it is")
    slow = _SLOW if dtype == "bfloat16" and autocast.is_slow(found) else ""
    return Offer(({"autocast": dtype},), on_request=slow)


_SLOW = "torch has no fast kernels for bfloat16 on this processor, so it is tried if `--only amp-bf16` asks for it"
