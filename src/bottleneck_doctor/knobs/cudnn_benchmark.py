"""`cudnn_benchmark`: whether cuDNN times its algorithms for each shape that it meets first, which makes that step slow.
It says nothing where the model computes on another device."""

from __future__ import annotations

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, seen, set_by_a_library
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cudnn_benchmark"


def _own(found: Found) -> SettingValue | None:
    return seen(NAME)(found) if found.device.startswith("cuda") else None


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "torch.backends.cudnn.benchmark = {value}",
        attribute="cudnn.benchmark",
        inserted=True,
        overruled_by=set_by_a_library(NAME),
    ),
    needs_settling=True,
    may_crash=True,
    own=_own,
)
