"""`contiguous_format`: pictures and weights of convolutions channel by channel in memory, where the user has them in
`channels_last`."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import MemoryFormat
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "contiguous_format"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=MemoryFormat("contiguous_format"),
    needs_settling=True,
    may_crash=True,
    idle_beside=("channels_last",),
)
