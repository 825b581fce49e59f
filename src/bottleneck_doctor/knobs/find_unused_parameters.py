"""`find_unused_parameters`: whether DistributedDataParallel looks for parameters that a step did not use."""

from __future__ import annotations

from bottleneck_doctor.knobs._exchange import where_wrapped
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "find_unused_parameters"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=where_wrapped(
        "find_unused_parameters=False", "leave `find_unused_parameters=True` out", given=((NAME, False),)
    ),
    of_trainer=lambda value, found: {"ddp_find_unused_parameters": value},
)
