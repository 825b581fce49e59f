"""`no_sync`: whether ranks exchange gradients once for each update, and not after each of its backward passes."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "no_sync"


def passes(found: Found) -> int | None:
    """How many backward passes an update takes; None where that was not seen."""
    seen = (told(found, NAME) or {}).get("passes")
    return seen if isinstance(seen, int) else None


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="with model.no_sync()",
        otherwise=(
            "put forward and backward pass of all batches but the last one before an update under "
            "`with model.no_sync():`"
        ),
        calls=(),
    ),
)
