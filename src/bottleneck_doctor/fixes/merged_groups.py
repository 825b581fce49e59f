"""`merged-groups`: one group of parameters where several have the same hyperparameters."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import merged_groups
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, merged_groups.NAME) or Offer(({merged_groups.NAME: True},))


FIX = Fix(
    id="merged-groups",
    title="Merge the optimizer's parameter groups",
    why=(
        "An optimizer goes through its parameter groups one by one, and a fused operation covers one group at most. "
        "With a group for every tensor, nothing is left to fuse."
    ),
    source="https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options",
    risk="identical",
    how=(
        "Give the optimizer one group for all parameters with the same learning rate, weight decay and other "
        "hyperparameters, unless a scheduler treats them differently later."
    ),
    target="compute",
    propose=propose,
    order=47,
    acts_on=("optimizer",),
)
