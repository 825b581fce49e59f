"""`batched_fetch`: whether the loader takes whole batches out of its dataset, by one list of indices each."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import KnobSpec, WholeBatches
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "batched_fetch"


def obstacle(found: Found) -> str | None:
    """Why the guest can't have it so, "" where it can; None where it has not looked."""
    seen = found.facts.get(NAME)
    told = seen.get("obstacle") if isinstance(seen, dict) else None
    return told if isinstance(told, str) else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=WholeBatches("sampler=BatchSampler(...), batch_size=None"),
    only_loads=True,
)
