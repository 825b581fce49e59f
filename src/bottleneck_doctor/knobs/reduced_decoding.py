"""`reduced_decoding`: whether JPEG pictures are decoded at a part of their size, where no more of it is used."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import ReducedPictures, SmallerPictures
from bottleneck_doctor.knobs._spec import KnobSpec, told, told_calls, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "reduced_decoding"


def obstacle(found: Found) -> str | None:
    """Why pictures can't be decoded smaller, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


def smaller(found: Found) -> SmallerPictures | None:
    """How the user's pictures can be decoded smaller; None where they can't."""
    seen = told(found, NAME) or {}
    match seen:
        case {"obstacle": "", "library": str(library), "side": int(side), "factor": int(factor)}:
            return SmallerPictures(library, side, factor, tuple(told_calls(found, NAME)), seen.get("folder") is True)
    return None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=ReducedPictures("image.draft(image.mode, size)", smaller),
    only_loads=True,
    idle_beside=("cached_samples", "cached_inputs"),
)
