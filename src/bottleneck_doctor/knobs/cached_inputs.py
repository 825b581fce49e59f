"""`cached_inputs`: whether what the transforms of the samples get, such as decoded pictures, is kept in memory."""

from __future__ import annotations

import msgspec

from bottleneck_doctor.knobs._edits import HeldTransforms, KeptInputs
from bottleneck_doctor.knobs._spec import KnobSpec, prepared, told, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cached_inputs"


def obstacle(found: Found) -> str | None:
    """Why inputs can't be kept, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


def _held(found: Found) -> HeldTransforms | None:
    held = (told(found, NAME) or {}).get("held")
    try:
        return msgspec.convert(held, HeldTransforms)
    except msgspec.ValidationError:  # It was told by another release.
        return None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=KeptInputs("dataset=KeptInputs(dataset)", _held),
    only_loads=True,
    in_part=True,
    prepares=prepared(NAME),
    idle_beside=("cached_samples",),
)
