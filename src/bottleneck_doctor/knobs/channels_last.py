"""`channels_last`: how pictures and weights of convolutions lie in memory. Kernels are picked again for the other
layout. A model that flattens by `view` refuses it: a process that ends there ends for that."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import MemoryFormat
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "channels_last"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=MemoryFormat("channels_last"),
    options=("channels-last", "memory-format"),
    needs_settling=True,
    may_crash=True,
)
