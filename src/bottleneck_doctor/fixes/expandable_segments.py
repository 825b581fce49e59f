"""`expandable-segments`: memory of a CUDA device in segments that grow, where it ran short although some was free."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import expandable_segments
from bottleneck_doctor.knobs._spec import told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cuda"):
        return NotApplicable(f"the model trains on the {found.device.upper()}, and not on a CUDA device")
    obstacle, variable = told_obstacle(found, expandable_segments.NAME), expandable_segments.variable(found)
    if obstacle or variable is None:
        return NotApplicable(obstacle or "what torch's allocator has counted could not be seen")
    return Offer(({expandable_segments.NAME: variable},))


FIX = Fix(
    id="expandable-segments",
    title="Let the device's memory be in segments that grow",
    why=(
        "Where tensors differ in size from step to step, the device's free memory is in pieces, none of which is large "
        "enough. torch then gives all that is free back to the device and asks for it again, while the device waits."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf",
    risk="identical",
    how=(
        "Set `PYTORCH_ALLOC_CONF=expandable_segments:True` before Python starts; before torch 2.9, it is called "
        "`PYTORCH_CUDA_ALLOC_CONF`."
    ),
    target="compute",
    propose=propose,
    order=26,
)
