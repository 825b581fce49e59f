"""`intra_op_threads`: threads that one operation is spread over in the main process."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import Call, KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "intra_op_threads"


def _set_by_a_library(found: Found) -> Site | None:
    seen = told(found, NAME) or {}
    file, line = seen.get("file"), seen.get("line")
    return Site(file, line) if isinstance(file, str) and isinstance(line, int) else None


KNOB = KnobSpec(name=NAME, layer="process", edit=Call("torch.set_num_threads({value})", overruled_by=_set_by_a_library))
