"""`sharing_strategy`: how loader workers hand the tensors of a batch over."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, seen, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "sharing_strategy"
BY_NAME = "file_system"


def tensors(found: Found) -> int | None:
    """The tensors of a batch, as they are handed over; None where they were not seen."""
    count = (told(found, NAME) or {}).get("tensors")
    return count if isinstance(count, int) else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=Call('torch.multiprocessing.set_sharing_strategy("{value}")'),
    only_loads=True,
    needs_workers=True,
    own=seen(NAME),
)
