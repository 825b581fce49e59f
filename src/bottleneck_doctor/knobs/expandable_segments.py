"""`expandable_segments`: whether torch's memory on a CUDA device is in segments that grow. The value is the variable
that says so."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Variables
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "expandable_segments"


def variable(found: Found) -> str | None:
    """The variable that the program's torch reads; None where the guest told of none."""
    seen = (told(found, NAME) or {}).get("variable")
    return seen if isinstance(seen, str) else None


def _variables(value: SettingValue) -> Mapping[str, str]:
    return {str(value): "expandable_segments:True"}


KNOB = KnobSpec(name=NAME, layer="session", edit=Variables(_variables))
