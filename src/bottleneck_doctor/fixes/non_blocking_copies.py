"""`non-blocking-copies`: copy pinned batches without waiting for it, where the loop waits."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, copies_obstacle
from bottleneck_doctor.knobs import non_blocking
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = copies_obstacle(found)
    if obstacle is not None:
        return obstacle
    if not found.pin_memory:
        return NotApplicable("batches are not pinned, and `pinned-memory` tries both together")
    if not non_blocking.calls(found):
        return NotApplicable("no line of the loop was seen that copies a batch to the device and waits for it")
    return Offer(({non_blocking.NAME: True},))


FIX = Fix(
    id="non-blocking-copies",
    title="Copy batches without waiting",
    why=(
        "Batches are pinned, but `.to(device)` waits until they are copied all the same. With `non_blocking=True`, the "
        "host starts the next operations meanwhile."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    risk="identical",
    how=(
        "Pass `non_blocking=True` to `.to(device)`. In accelerate, that is "
        "`DataLoaderConfiguration(non_blocking=True)`."
    ),
    target="transfer",
    propose=propose,
    order=40,
    acts_on=("data_wait", "host_to_device", "between"),
)
