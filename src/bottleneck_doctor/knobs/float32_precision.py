"""`float32_precision`: what products of float32 matrices are computed in. After a change kernels are picked again, and
what was compiled is compiled again."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, seen, set_by_a_library, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "float32_precision"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call('torch.set_float32_matmul_precision("{value}")', overruled_by=set_by_a_library(NAME)),
    needs_settling=True,
    own=seen(NAME),
)


def in_float64(found: Found) -> float | None:
    """The part of the model's weights that are float64; None where it is not known."""
    share = (told(found, NAME) or {}).get("double")
    return float(share) if isinstance(share, int | float) else None
