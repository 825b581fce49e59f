"""`batched_grad_copy`: whether DistributedDataParallel copies all gradients of a bucket at once."""

from __future__ import annotations

from bottleneck_doctor.knobs import find_unused_parameters
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "batched_grad_copy"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="batched_grad_copy=True",
        otherwise=(
            "pass `batched_grad_copy=True` where the model is wrapped in `DistributedDataParallel`, or tell the "
            "trainer that wraps it"
        ),
        calls=find_unused_parameters.CALLS,
        given=((NAME, True),),
    ),
)
