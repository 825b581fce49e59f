"""`intra_op_threads`: threads that one operation is spread over in the main process."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import Call, KnobSpec

KNOB = KnobSpec(name="intra_op_threads", layer="process", edit=Call("torch.set_num_threads({value})"))
