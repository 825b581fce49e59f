"""`workers`: load batches in other processes while this one computes."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, workers_obstacle
from bottleneck_doctor.runtime.wire.messages import Found


def sweep(usable_cpus: int, current: int) -> list[int]:
    """Worker counts to begin with: powers of two to the first at or above twice the usable CPUs, without `current`."""
    counts = [1]
    while counts[-1] < 2 * usable_cpus:
        counts.append(counts[-1] * 2)
    if len(counts) > 5:
        # On a large machine the small counts say little: the curve is filled in around the best later.
        counts = counts[-5:]
    return [count for count in counts if count != current]


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found)
    if obstacle is not None:
        return obstacle
    counts = sweep(found.usable_cpus, found.num_workers)
    return Offer(tuple({"num_workers": count} for count in counts), sweep=True)


FIX = Fix(
    id="workers",
    title="Load batches in worker processes",
    why="Worker processes read, decode and collate the next batches while the training process computes.",
    source="https://pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",
    risk="identical",
    how="Pass `num_workers=N` to the DataLoader.",
    target="data",
    propose=propose,
    order=10,
)
