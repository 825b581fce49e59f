"""`checkpointing`: whether activations are computed a second time in the backward pass. Without that, they stay in
memory, which may run out."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "checkpointing"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "gradient_checkpointing={value}",
        arguments=("gradient_checkpointing", "grad_checkpointing", "use_checkpoint"),
        otherwise="call what `torch.utils.checkpoint` wraps directly, leave `gradient_checkpointing_enable()` out, or "
        "give the trainer's arguments `gradient_checkpointing=False` (TRL's have it on by default)",
    ),
    may_crash=True,
    of_trainer=lambda value, found: {"gradient_checkpointing": value},
)
