"""`prefetch-factor`: let each worker prepare more batches ahead."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, workers_obstacle
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found)
    if obstacle is not None:
        return obstacle
    current = (found.prefetch_factor or 2) if found.num_workers > 0 else 2
    return Offer(({"prefetch_factor": 4 if current < 4 else 2 * current},), with_workers=True)


FIX = Fix(
    id="prefetch-factor",
    title="Let workers prepare more batches ahead",
    why="With more batches in the queue, training does not wait when one takes unusually long to load.",
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    risk="identical",
    how="Pass `prefetch_factor=N` to the DataLoader.",
    target="data",
    propose=propose,
    order=30,
)
