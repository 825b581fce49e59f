"""`checkpointing`: whether activations are computed a second time in the backward pass. Without that, they stay in
memory, which may run out."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, told_calls
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "checkpointing"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """The user's own calls of torch's `checkpoint`, where all come from them."""
    return told_calls(found, NAME)


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "no activation checkpointing",
        arguments=("gradient_checkpointing", "grad_checkpointing", "use_checkpoint"),
        otherwise="call what `torch.utils.checkpoint` wraps directly, leave `gradient_checkpointing_enable()` out, or "
        "give the trainer's arguments `gradient_checkpointing=False` (TRL's have it on by default)",
        wraps=calls,
        wrapper_arguments=(
            "use_reentrant",
            "preserve_rng_state",
            "context_fn",
            "determinism_check",
            "debug",
            "early_stop",
        ),
    ),
    may_crash=True,
    of_trainer=lambda value, found: {"gradient_checkpointing": value},
)
