"""`batch_size`: how many samples a batch has, a multiple of the user's own."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "batch_size"

KNOB = KnobSpec(name=NAME, layer="loader", edit=LoaderArgument(5), resizes=True, may_crash=True)
