"""`zero-grad-none`: gradients that are let go, and not filled with zeros."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import zero_grad_none
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, zero_grad_none.NAME) or Offer(({zero_grad_none.NAME: True},))


FIX = Fix(
    id="zero-grad-none",
    title="Set gradients to None instead of zeros",
    why=(
        "Filling gradients with zeros writes to all of their memory, and the backward pass then has to add to them. "
        "Where a gradient is None, the backward pass simply stores the new one."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
    risk="identical",
    how="Call `optimizer.zero_grad()` without `set_to_none=False`.",
    target="compute",
    propose=propose,
    order=48,
    # What it saves in the backward pass is no part of its own there.
    acts_on=("zero_grad", "backward"),
)
