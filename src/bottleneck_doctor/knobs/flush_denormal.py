"""`flush_denormal`: whether the processor takes denormal numbers, those next to 0, as 0."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, seen

NAME = "flush_denormal"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call("torch.set_flush_denormal({value})"),
    own=seen(NAME),
)
