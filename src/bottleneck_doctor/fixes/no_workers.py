"""`no-workers`: load in the main process, where handing batches over costs more than making them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if found.num_workers == 0:
        return NotApplicable("already on: batches are loaded in the main process")
    return Offer(({"num_workers": 0},))


FIX = Fix(
    id="no-workers",
    title="Load batches in the main process",
    why="If samples are in memory, starting workers and handing batches over can cost more than loading them.",
    source="https://pytorch.org/docs/stable/data.html#single-process-data-loading-default",
    risk="identical",
    how="Pass `num_workers=0` to the DataLoader.",
    target="data",
    propose=propose,
    frees_cpus=True,
    order=11,
)
