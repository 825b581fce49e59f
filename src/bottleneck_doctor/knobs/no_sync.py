"""`no_sync`: whether ranks exchange gradients once for each update, and not after each of its backward passes."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import Argument, KnobSpec

NAME = "no_sync"
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
