"""`cached_inputs`: whether what the transforms of the samples get, such as decoded pictures, is kept in memory."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import HeldTransforms, KeptInputs, KnobSpec, prepared, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cached_inputs"


def obstacle(found: Found) -> str | None:
    """Why inputs can't be kept, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


def _held(found: Found) -> HeldTransforms | None:
    told = found.facts.get(NAME)
    held = told.get("held") if isinstance(told, dict) else None
    if not isinstance(held, dict):
        return None
    owner, name, kind, place = (held.get(each) for each in ("owner", "name", "kind", "place"))
    if not isinstance(owner, str) or not isinstance(name, str) or not isinstance(kind, str):
        return None
    return HeldTransforms(owner, name, kind, place) if isinstance(place, str) else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=KeptInputs("dataset=KeptInputs(dataset)", _held),
    only_loads=True,
    in_part=True,
    prepares=prepared(NAME),
    idle_beside=("cached_samples",),
)
