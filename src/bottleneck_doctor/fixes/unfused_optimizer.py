"""`unfused-optimizer`: torch's default step, where the user's optimizer is fused. It shows what that is worth."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import unfused_optimizer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, unfused_optimizer.NAME) or Offer(({unfused_optimizer.NAME: True},))


FIX = Fix(
    id="unfused-optimizer",
    title="Leave the fused optimizer out",
    why=(
        "A fused step saves the small operations that a step takes for each tensor. If there are few tensors, and "
        "large ones, these cost hardly anything."
    ),
    source="https://docs.pytorch.org/docs/stable/optim.html",
    risk="numerics",
    how="Leave `fused=True` out where the optimizer is made.",
    target="compute",
    propose=propose,
    order=56,
    acts_on=("optimizer",),
    undoes=("fused-optimizer",),
)
