"""`bucket-size`: gradients exchanged in larger pieces, or in smaller ones."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import bucket_cap_mb
from bottleneck_doctor.runtime.wire.messages import Found

LARGER = 4
"""Where gradients fill several buckets, buckets of so many times the size are tried."""
PIECES = 4
"""Where they fit into one, buckets that hold a part of so many are tried."""


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = knob_obstacle(found, bucket_cap_mb.NAME)
    if obstacle is not None:
        return obstacle
    seen = bucket_cap_mb.buckets(found)
    if seen is None:
        return NotApplicable("how many gradients are exchanged was not seen")
    size = LARGER * seen.cap if seen.gradients > seen.cap else seen.gradients / PIECES
    if size < 1:
        return NotApplicable(f"its gradients take {seen.gradients:.2g} MiB, and smaller pieces would cost more")
    return Offer(({bucket_cap_mb.NAME: round(size)},))


FIX = Fix(
    id="bucket-size",
    title="Exchange gradients in pieces of another size",
    why=(
        "DistributedDataParallel exchanges gradients in buckets of 25 MiB, while the backward pass computes the next "
        "ones. Larger buckets take fewer exchanges; if all gradients fit into one bucket, it is not exchanged before "
        "the backward pass is over."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design",
    risk="numerics",
    how=(
        "Pass `bucket_cap_mb=` to `DistributedDataParallel`. Lightning's `DDPStrategy` and accelerate's "
        "`DistributedDataParallelKwargs` take the same argument, and transformers calls it `ddp_bucket_cap_mb`."
    ),
    target="compute",
    propose=propose,
    order=49,
    acts_on=("communication", "backward"),
)
