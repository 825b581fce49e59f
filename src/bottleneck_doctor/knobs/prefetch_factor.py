"""`prefetch_factor`: batches that each worker makes ahead."""

from __future__ import annotations

from dataclasses import replace

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec, Loading
from bottleneck_doctor.runtime.wire.messages import Found


def _own(found: Found) -> int | None:
    return found.prefetch_factor if found.has_loader and found.num_workers > 0 else None


def _loads(loading: Loading, value: SettingValue) -> Loading:
    return replace(loading, prefetch=int(value))


KNOB = KnobSpec(
    name="prefetch_factor",
    layer="loader",
    edit=LoaderArgument(20),
    only_loads=True,
    needs_workers=True,
    own=_own,
    loads=_loads,
)
