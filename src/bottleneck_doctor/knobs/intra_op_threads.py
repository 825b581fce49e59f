"""`intra_op_threads`: threads that one operation is spread over in the main process."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, set_by_a_library

NAME = "intra_op_threads"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call("torch.set_num_threads({value})", overruled_by=set_by_a_library(NAME)),
)
