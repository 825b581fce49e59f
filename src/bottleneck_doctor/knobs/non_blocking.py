"""`non_blocking`: whether the training loop's copies of pinned batches let the host go on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import GivenArgument
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "non_blocking"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """The calls of the loop that copy to a device and wait: by what name, and where."""
    seen = (told(found, NAME) or {}).get("calls")
    kept = []
    for each in seen if isinstance(seen, list) else ():
        match each:
            case [str(name), str(file), int(line)]:
                kept.append((name, Site(file=file, line=line)))
    return kept


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=GivenArgument("non_blocking", True, position=2, calls=calls),
)
