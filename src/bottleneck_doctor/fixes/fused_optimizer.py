"""`fused-optimizer`: the optimizer's step in a few operations, and not in several for each tensor."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import foreach_optimizer, fused_optimizer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    fused = knob_obstacle(found, fused_optimizer.NAME)
    if fused is None:
        return Offer(({fused_optimizer.NAME: True},))
    if knob_obstacle(found, foreach_optimizer.NAME) is None:
        return Offer(({foreach_optimizer.NAME: True},))
    return fused


FIX = Fix(
    id="fused-optimizer",
    title="Use a fused optimizer",
    why=(
        "An optimizer that goes through its tensors in Python runs ten or more small operations for each tensor. A "
        "fused one runs a single operation for a whole group. Where there is none, `foreach=True` runs each operation "
        "once for a list of tensors."
    ),
    source="https://docs.pytorch.org/docs/stable/optim.html",
    risk="numerics",
    how=(
        "Pass `fused=True` to the optimizer, or `foreach=True` if its class has no `fused`. transformers' "
        '`TrainingArguments` takes `optim="adamw_torch_fused"`.'
    ),
    target="compute",
    propose=propose,
    order=46,
    acts_on=("optimizer",),
)
