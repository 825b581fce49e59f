"""`single_threaded`: libraries that compute with one thread in each loader worker, such as `openblas+opencv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import Variables
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "single_threaded"
VARIABLES: Mapping[str, str] = {"openblas": "OPENBLAS_NUM_THREADS", "opencv": "OPENCV_FOR_THREADS_NUM"}
"""Libraries that the guest can limit, with the variable that they read when they are loaded. It acts on the training
process, too, which windows leave as it is; there, torch's own threads are not meant by it."""


def variables(value: SettingValue) -> Mapping[str, str]:
    """What is set around a process for a value; nothing for a library that is not known here."""
    return {VARIABLES[name]: "1" for name in str(value).split("+") if name in VARIABLES}


def seen(found: Found) -> dict[str, Any] | None:
    """What the guest saw of this loop's samples; None where it has not looked."""
    return told(found, NAME)


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=Variables(variables),
    only_loads=True,
    needs_workers=True,
    idle_beside=("cached_samples",),
    shares_cores=True,
)
