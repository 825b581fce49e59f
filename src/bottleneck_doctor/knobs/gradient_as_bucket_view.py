"""`gradient_as_bucket_view`: whether gradients lie in the memory in which DistributedDataParallel exchanges them."""

from __future__ import annotations

from bottleneck_doctor.knobs._exchange import switched_on
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "gradient_as_bucket_view"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=switched_on(NAME),
)
