"""`cudnn_allow_tf32`: whether cuDNN may compute float32 convolutions in TensorFloat32. It says nothing where the model
computes on another device."""

from __future__ import annotations

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, seen
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cudnn_allow_tf32"


def _own(found: Found) -> SettingValue | None:
    return seen(NAME)(found) if found.device.startswith("cuda") else None


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch("torch.backends.cudnn.allow_tf32 = {value}", attribute="cudnn.allow_tf32"),
    needs_settling=True,
    own=_own,
)
