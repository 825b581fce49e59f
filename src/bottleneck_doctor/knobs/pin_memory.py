"""`pin_memory`: batches in page-locked memory. They are copied to a device faster, so it does more than load."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec
from bottleneck_doctor.runtime.wire.messages import Found


def _own(found: Found) -> bool | None:
    return found.pin_memory if found.has_loader else None


KNOB = KnobSpec(name="pin_memory", layer="loader", edit=LoaderArgument(40), own=_own)
