"""`persistent_workers`: workers live on from one epoch to the next."""

from __future__ import annotations

from dataclasses import replace

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec, Loading
from bottleneck_doctor.runtime.wire.messages import Found


def _own(found: Found) -> bool | None:
    return found.persistent_workers if found.has_loader else None


def _loads(loading: Loading, value: SettingValue) -> Loading:
    return replace(loading, persistent=bool(value))


KNOB = KnobSpec(
    name="persistent_workers",
    layer="loader",
    edit=LoaderArgument(30),
    only_loads=True,
    needs_workers=True,
    own=_own,
    loads=_loads,
)
