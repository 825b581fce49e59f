"""`batch_size`: how many samples a batch has, a multiple of the user's own."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import KnobSpec, LoaderArgument
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "batch_size"


def obstacle(found: Found) -> str | None:
    """Why batches can't be larger, "" where they can; None where the guest has not looked."""
    seen = found.facts.get(NAME)
    told = seen.get("obstacle") if isinstance(seen, dict) else None
    return told if isinstance(told, str) else None


KNOB = KnobSpec(name=NAME, layer="loader", edit=LoaderArgument(5), may_crash=True)
