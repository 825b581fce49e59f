"""`merged_groups`: whether an optimizer holds parameters with equal hyperparameters in one group."""

from __future__ import annotations

from bottleneck_doctor.knobs import foreach_optimizer
from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec, told_made

NAME = "merged_groups"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="merged param_groups",
        otherwise=(
            "give the optimizer one group for all parameters with the same hyperparameters: "
            '`[{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]`'
        ),
        calls=foreach_optimizer.CLASSES,
        made=told_made(NAME),
    ),
)
