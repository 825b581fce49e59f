"""`bucket-views`: gradients that lie where ranks exchange them, instead of being copied there and back."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import gradient_as_bucket_view
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, gradient_as_bucket_view.NAME) or Offer(({gradient_as_bucket_view.NAME: True},))


FIX = Fix(
    id="bucket-views",
    title="Let gradients lie where they are exchanged",
    why=(
        "DistributedDataParallel copies each gradient into a bucket, exchanges the bucket, and copies the mean back. "
        "Gradients that lie in the bucket are not copied, and take no memory of their own."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
    risk="identical",
    how=(
        "Pass `gradient_as_bucket_view=True` to `DistributedDataParallel`. Lightning's `DDPStrategy` and accelerate's "
        "`DistributedDataParallelKwargs` take the same argument. A program that calls `detach_()` on a gradient can't "
        "have it."
    ),
    target="compute",
    propose=propose,
    order=44,
    acts_on=("communication", "backward", "optimizer"),
)
