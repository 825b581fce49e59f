"""`fused_optimizer`: whether an optimizer of torch's steps in one fused operation a group."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument, Callback
from bottleneck_doctor.knobs._spec import KnobSpec, told_made

NAME = "fused_optimizer"
CLASSES = ("Adam", "AdamW", "SGD", "Adagrad")
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="fused=True",
        otherwise="pass `fused=True` where the optimizer is made, or tell the trainer that makes it",
        calls=CLASSES,
        given=(("fused", True),),
        without={"foreach": None},
        made=told_made(NAME),
    ),
    of_ultralytics=lambda value, found: Callback(
        "on_train_start", "[group.update(fused=True) for group in trainer.optimizer.param_groups]"
    ),
)
