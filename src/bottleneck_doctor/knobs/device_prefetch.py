"""`device_prefetch`: each batch is copied to the device while the one before it is computed."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import CopiedAhead
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "device_prefetch"

KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=CopiedAhead("for batch in copied_ahead(loader, device)"),
    # What has moved a batch to the device leaves nothing to copy.
    idle_beside=("batched_transforms", "replay"),
)
