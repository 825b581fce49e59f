"""`foreach_optimizer`: whether an optimizer of torch's steps by operations on lists of tensors."""

from __future__ import annotations

from bottleneck_doctor.knobs import fused_optimizer
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec, told_made

NAME = "foreach_optimizer"
CLASSES = (*fused_optimizer.CLASSES, "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="foreach=True",
        otherwise="pass `foreach=True` where the optimizer is made",
        calls=CLASSES,
        given=(("foreach", True),),
        without={"fused": None},
        made=told_made(NAME),
    ),
)
