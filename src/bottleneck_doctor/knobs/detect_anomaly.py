"""`detect_anomaly`: whether every operation notes where it was called, and every gradient is searched for NaN."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Switch
from bottleneck_doctor.knobs._spec import KnobSpec, seen

NAME = "detect_anomaly"
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Switch(
        "torch.autograd.set_detect_anomaly({value})",
        calls=("set_detect_anomaly", "set_anomaly_enabled"),
        arguments=("detect_anomaly",),
        contexts=("detect_anomaly",),
    ),
    own=seen(NAME),
)
