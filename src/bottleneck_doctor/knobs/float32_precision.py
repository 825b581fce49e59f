"""`float32_precision`: what products of float32 matrices are computed in. After a change kernels are picked again, and
what was compiled is compiled again."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, seen, set_by_a_library

NAME = "float32_precision"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call('torch.set_float32_matmul_precision("{value}")', overruled_by=set_by_a_library(NAME)),
    needs_settling=True,
    own=seen(NAME),
)
