"""`late_values`: whether the training loop takes numbers out of tensors, only to record them, now and then."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import RecordedValues
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "late_values"


def places(found: Found) -> Sequence[Site]:
    """The lines that take them."""
    seen = (told(found, NAME) or {}).get("lines")
    kept = []
    for each in seen if isinstance(seen, list) else ():
        match each:
            case [str(file), int(line)]:
                kept.append(Site(file=file, line=line))
    return kept


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=RecordedValues(
        ".item() once in many steps",
        "keep this as a tensor (`total += loss.detach()`) and take the number out after the loop, or do this once in "
        "so many steps, as in `if step % 50 == 0:`",
        places,
    ),
)
