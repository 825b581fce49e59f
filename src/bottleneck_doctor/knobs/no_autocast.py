"""`no_autocast`: whether the user's own autocast is left out. Tensors of float32 are larger, so memory may run out."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "no_autocast"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="torch.autocast(enabled=False)",
        otherwise="leave `torch.autocast` out, or tell the trainer that switches it on: `bf16=False` and `fp16=False`, "
        '`precision="32-true"` or `mixed_precision="no"`',
        calls=("autocast",),
        of=("torch", "amp"),
        given=(("enabled", False),),
    ),
    needs_settling=True,
    may_crash=True,
    of_trainer=lambda value, found: {"bf16" if found.autocast == "bfloat16" else "fp16": False},
)
