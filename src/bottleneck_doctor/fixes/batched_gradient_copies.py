"""`batched-gradient-copies`: all gradients of a bucket copied at once, where ranks exchange them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import batched_grad_copy
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, batched_grad_copy.NAME) or Offer(({batched_grad_copy.NAME: True},))


FIX = Fix(
    id="batched-gradient-copies",
    title="Copy gradients to be exchanged all at once",
    why=(
        "DistributedDataParallel copies each gradient into a bucket and divides it by the number of ranks, one after "
        "the other. With many small parameters, these are many small operations; a bucket's can be done at once."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
    risk="identical",
    how=(
        "Pass `batched_grad_copy=True` to `DistributedDataParallel`, which newer releases of torch have. Lightning's "
        "`DDPStrategy` takes the same argument."
    ),
    target="compute",
    propose=propose,
    order=46,
    acts_on=("communication", "backward"),
)
