"""`device-prefetch`: the next batch is copied to the device while this one is computed."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, copies_obstacle
from bottleneck_doctor.knobs import device_prefetch
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = copies_obstacle(found)
    if obstacle is not None:
        return obstacle
    # Only a copy from pinned memory runs beside what the device computes.
    pinned = {} if found.pin_memory else {"pin_memory": True}
    return Offer(({**pinned, device_prefetch.NAME: True},))


FIX = Fix(
    id="device-prefetch",
    title="Copy the next batch while this one is computed",
    why=(
        "A copy from pinned memory in a stream of its own runs beside what the device computes. In the stream of the "
        "training, the device first copies a batch, and then computes."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    risk="identical",
    how=(
        "Fetch one batch more than the loop has, copy it with `non_blocking=True` under `with torch.cuda.stream(...)`, "
        "and let the training's stream wait for that one before the batch is used. `pin_memory=True` is needed for it. "
        "Lightning, accelerate and transformers have no option for this; a loader that copies ahead can be given to "
        "them in place of their own."
    ),
    target="transfer",
    propose=propose,
    order=42,
    acts_on=("data_wait", "host_to_device", "between"),
)
