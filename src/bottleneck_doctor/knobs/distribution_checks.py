"""`distribution_checks`: whether torch's distributions check the values that they are given."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "distribution_checks"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call("torch.distributions.Distribution.set_default_validate_args({value})"),
)
