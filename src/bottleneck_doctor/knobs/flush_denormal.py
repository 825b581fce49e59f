"""`flush_denormal`: whether the processor takes denormal numbers, those next to 0, as 0."""

from __future__ import annotations

from typing import Any

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs._edits import Call
from bottleneck_doctor.knobs._spec import KnobSpec, seen, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "flush_denormal"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Call("torch.set_flush_denormal({value})"),
    own=seen(NAME),
)


def alone(setting: Setting) -> bool:
    """Whether a setting takes such numbers as 0, and changes nothing else."""
    return setting == {NAME: True}


def seen_in(found: Found) -> list[str]:
    """Where the guest saw such numbers, in words; empty where it saw none."""
    facts: dict[str, Any] = told(found, NAME) or {}
    return [str(each) for each in facts.get("places", [])]
