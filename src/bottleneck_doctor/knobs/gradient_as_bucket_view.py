"""`gradient_as_bucket_view`: whether gradients lie in the memory in which DistributedDataParallel exchanges them."""

from __future__ import annotations

from bottleneck_doctor.knobs import find_unused_parameters
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "gradient_as_bucket_view"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="gradient_as_bucket_view=True",
        otherwise=(
            "pass `gradient_as_bucket_view=True` where the model is wrapped in `DistributedDataParallel`, or tell the "
            "trainer that wraps it"
        ),
        calls=find_unused_parameters.CALLS,
        given=((NAME, True),),
    ),
)
