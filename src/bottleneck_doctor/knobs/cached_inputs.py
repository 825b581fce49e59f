"""`cached_inputs`: whether what the transforms of the samples get, such as decoded pictures, is kept in memory."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import HeldTransforms, KeptInputs, KnobSpec, prepared, told, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cached_inputs"


def obstacle(found: Found) -> str | None:
    """Why inputs can't be kept, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


def _held(found: Found) -> HeldTransforms | None:
    held = (told(found, NAME) or {}).get("held")
    if not isinstance(held, dict):
        return None
    owner, name, kind, place = map(held.get, ("owner", "name", "kind", "place"))
    if not (isinstance(owner, str) and isinstance(name, str) and isinstance(kind, str) and isinstance(place, str)):
        return None
    places = held.get("places")
    named = places.items() if isinstance(places, dict) else ()
    return HeldTransforms(owner, name, kind, place, tuple((str(each), str(where)) for each, where in named))


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=KeptInputs("dataset=KeptInputs(dataset)", _held),
    only_loads=True,
    in_part=True,
    prepares=prepared(NAME),
    idle_beside=("cached_samples",),
)
