"""`batched_grad_copy`: whether DistributedDataParallel copies all gradients of a bucket at once."""

from __future__ import annotations

from bottleneck_doctor.knobs._exchange import switched_on
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "batched_grad_copy"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=switched_on(NAME),
)
