"""`in_order`: whether batches are handed over in the order in which they were asked for."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import KnobSpec, LoaderArgument
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "in_order"


def obstacle(found: Found) -> str | None:
    """Why batches have to come in that order, "" where they need not; None where the guest has not looked."""
    seen = found.facts.get(NAME)
    told = seen.get("obstacle") if isinstance(seen, dict) else None
    return told if isinstance(told, str) else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=LoaderArgument(35),
    only_loads=True,
    needs_workers=True,
)
