"""`pinned-memory`: batches in page-locked memory and copies that do not block."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, copies_obstacle
from bottleneck_doctor.knobs import non_blocking
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = copies_obstacle(found)
    if obstacle is not None:
        return obstacle
    if found.pin_memory:
        return NotApplicable("already on")
    copies: Setting = {non_blocking.NAME: True} if non_blocking.calls(found) else {}
    return Offer(({"pin_memory": True, **copies},))


FIX = Fix(
    id="pinned-memory",
    title="Pin batches in memory and copy without blocking",
    why="Copies from page-locked memory are faster and can run while the device computes.",
    source="https://pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
    risk="identical",
    how="Pass `pin_memory=True` to the DataLoader and `non_blocking=True` to `.to(device)`.",
    target="transfer",
    propose=propose,
    order=40,
    # A copy may be a part of what waits for data, or be made by a call that is not one of those that are timed.
    acts_on=("data_wait", "host_to_device", "between"),
)
