"""`no-sync`: gradients exchanged once for each update, where several backward passes make one."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import no_sync
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = knob_obstacle(found, no_sync.NAME)
    if obstacle is not None:
        return obstacle
    passes = no_sync.passes(found)
    if found.grad_scaler and (not passes or not found.epoch_batches or found.epoch_batches % passes):
        # The scaler looks for an overflow before anybody could exchange the gradients of an update that ends early.
        return NotApplicable("gradients are scaled, and the last update of an epoch may take fewer backward passes")
    return Offer(({no_sync.NAME: True},))


FIX = Fix(
    id="no-sync",
    title="Exchange gradients once for each update",
    why=(
        "DistributedDataParallel exchanges gradients in each backward pass. If several passes make one update, one "
        "exchange in the last of them is enough."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
    "#torch.nn.parallel.DistributedDataParallel.no_sync",
    risk="numerics",
    how=(
        "Put forward and backward pass of all batches but the last one before an update under `with model.no_sync():`. "
        "Lightning, transformers and accelerate do so if they accumulate gradients: `accumulate_grad_batches`, "
        "`gradient_accumulation_steps`, `accelerator.accumulate(model)`."
    ),
    target="compute",
    propose=propose,
    order=42,
    acts_on=("communication", "backward"),
)
