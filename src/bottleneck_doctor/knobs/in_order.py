"""`in_order`: whether batches are handed over in the order in which they were asked for."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "in_order"


def is_off(found: Found) -> bool:
    """Whether the user's loader hands over batches as soon as they are ready."""
    return (told(found, NAME) or {}).get("off") is True


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=LoaderArgument(35),
    only_loads=True,
    needs_workers=True,
)
