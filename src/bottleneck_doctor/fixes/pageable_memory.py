"""`pageable-memory`: batches as they are made, where pinning them costs more than it saves."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if not found.pin_memory:
        return NotApplicable("already on: batches are not pinned")
    if not found.device.startswith("cuda"):
        return NotApplicable(f"the model trains on the {found.device.upper()}, where torch pins nothing")
    return Offer(({"pin_memory": False},))


FIX = Fix(
    id="pageable-memory",
    title="Leave pinned memory out",
    why=(
        "Pinning copies each batch once more, in a thread of the training process. If batches are small, or that "
        "process has no CPU to spare, this costs more than faster copies to the device save."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    risk="identical",
    how="Pass `pin_memory=False` to the DataLoader.",
    target="transfer",
    propose=propose,
    order=41,
    acts_on=("data_wait", "host_to_device", "between"),
    undoes=("pinned-memory",),
)
