"""`in_order`: whether batches are handed over in the order in which they were asked for."""

from __future__ import annotations

from bottleneck_doctor.knobs._spec import KnobSpec, LoaderArgument

NAME = "in_order"

KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=LoaderArgument(35),
    only_loads=True,
    needs_workers=True,
)
