"""`static_graph`: whether DistributedDataParallel learns once which parameters each step uses."""

from __future__ import annotations

from bottleneck_doctor.knobs import find_unused_parameters
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "static_graph"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="static_graph=True",
        otherwise=(
            "pass `static_graph=True` where the model is wrapped in `DistributedDataParallel`, or tell the "
            "trainer that wraps it"
        ),
        calls=find_unused_parameters.CALLS,
        given=((NAME, True),),
    ),
)
