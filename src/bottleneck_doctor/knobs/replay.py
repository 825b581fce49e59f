"""`replay`: the same few batches again and again: the ceiling of what faster loading can bring. Nobody trains so."""

from __future__ import annotations

from dataclasses import replace

from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.knobs._spec import KnobSpec, Loading


def _loads(loading: Loading, value: SettingValue) -> Loading:
    return replace(loading, workers=0) if value else loading


KNOB = KnobSpec(name="replay", layer="loader", edit=None, ceiling=True, loads=_loads)

SETTING: Setting = {KNOB.name: True}
"""The setting of that ceiling."""
