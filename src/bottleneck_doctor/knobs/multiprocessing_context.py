"""`multiprocessing_context`: how worker processes are started."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "multiprocessing_context"
FORK = "fork"


def _own(found: Found) -> str | None:
    return found.start_method if found.has_loader and found.own_start_method else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=LoaderArgument(15),
    only_loads=True,
    needs_workers=True,
    idle_beside=("persistent_workers",),
    own=_own,
)
