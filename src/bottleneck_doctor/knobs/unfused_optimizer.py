"""`unfused_optimizer`: whether an optimizer of torch's that is fused steps as it does by default."""

from __future__ import annotations

from bottleneck_doctor.knobs import fused_optimizer
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec, told_made

NAME = "unfused_optimizer"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="fused=False",
        otherwise="leave `fused=True` out where the optimizer is made",
        calls=fused_optimizer.CLASSES,
        given=(("fused", False),),
        made=told_made(NAME),
    ),
    idle_beside=("fused_optimizer", "foreach_optimizer"),
)
