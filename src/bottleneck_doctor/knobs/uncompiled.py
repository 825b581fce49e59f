"""`uncompiled`: whether what the user compiles with torch runs as it is written. It may need more memory then."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Uncompiled
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "uncompiled"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Uncompiled(),
    needs_settling=True,
    may_crash=True,
)
