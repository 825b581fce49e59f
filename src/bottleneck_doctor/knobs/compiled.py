"""`compiled`: whether the model is compiled, and in which mode. The first step under it compiles, which takes up to a
minute or more."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import OfModel
from bottleneck_doctor.knobs._spec import KnobSpec
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "compiled"
GRAPHS = "reduce-overhead"
"""The mode in which torch also records the kernels of a step into CUDA graphs, each of which it starts at once."""


def _call(value: SettingValue) -> str:
    return f'compile(mode="{value}")' if isinstance(value, str) else "compile()"


def _of_trainer(value: SettingValue, found: Found) -> Mapping[str, object]:
    mode = {"torch_compile_mode": value} if isinstance(value, str) else {}
    return {"torch_compile": True, **mode}


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=OfModel(_call),
    options=("compile", "compile-model", "torch-compile", "torchcompile", "use-compile"),
    needs_settling=True,
    first_step_seconds=180.0,
    usual_first_step_seconds=30.0,
    may_crash=True,
    of_trainer=_of_trainer,
)
