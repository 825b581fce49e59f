"""`static_graph`: whether DistributedDataParallel learns once which parameters each step uses."""

from __future__ import annotations

from bottleneck_doctor.knobs._exchange import switched_on
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "static_graph"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=switched_on(NAME),
)
