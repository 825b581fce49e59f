"""`zero_grad_none`: whether gradients are set to `None` where they are cleared, and not filled with zeros."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "zero_grad_none"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "set_to_none={value}",
        calls=("zero_grad",),
        arguments=("set_to_none",),
        otherwise="let `zero_grad` set gradients to `None`, as it does without an argument",
    ),
)
