"""`compiled`: whether the model is compiled. The first step under it compiles, which takes up to a minute or more."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import OfModel
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "compiled"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=OfModel("compile()"),
    options=("compile", "compile-model", "torch-compile", "torchcompile", "use-compile"),
    needs_settling=True,
    first_step_seconds=180.0,
    usual_first_step_seconds=30.0,
    may_crash=True,
    of_trainer=lambda value, found: {"torch_compile": True},
)
