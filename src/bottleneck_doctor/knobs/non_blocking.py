"""`non_blocking`: whether the training loop's copies of pinned batches let the host go on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import GivenArgument
from bottleneck_doctor.knobs._spec import KnobSpec, told_calls
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "non_blocking"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """The calls of the loop that copy to a device and wait: by what name, and where."""
    return told_calls(found, NAME)


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=GivenArgument("non_blocking", True, position=2, calls=calls),
)
