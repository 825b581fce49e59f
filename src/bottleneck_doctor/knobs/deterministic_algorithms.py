"""`deterministic_algorithms`: whether operations give the same result to the last bit in every run. After a
switch kernels are picked again, and what was compiled is compiled again."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, seen, set_by_a_library

NAME = "deterministic_algorithms"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "torch.use_deterministic_algorithms({value})",
        calls=("use_deterministic_algorithms",),
        arguments=("deterministic",),
        overruled_by=set_by_a_library(NAME),
    ),
    needs_settling=True,
    own=seen(NAME),
)
