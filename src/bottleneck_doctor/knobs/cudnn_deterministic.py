"""`cudnn_deterministic`: whether cuDNN is kept from algorithms whose results differ from run to run. It says nothing
where the model computes on another device."""

from __future__ import annotations

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, seen, set_by_a_library
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cudnn_deterministic"


def _own(found: Found) -> SettingValue | None:
    return seen(NAME)(found) if found.device.startswith("cuda") else None


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "torch.backends.cudnn.deterministic = {value}",
        attribute="cudnn.deterministic",
        overruled_by=set_by_a_library(NAME),
    ),
    needs_settling=True,
    own=_own,
)
