"""`cached_inputs`: whether what the transforms of the samples get, such as decoded pictures, is kept in memory."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import KeptInputs, KnobSpec, prepared, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cached_inputs"


def obstacle(found: Found) -> str | None:
    """Why inputs can't be kept, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=KeptInputs("transform(kept[index])"),
    only_loads=True,
    in_part=True,
    prepares=prepared(NAME),
    idle_beside=("cached_samples",),
)
