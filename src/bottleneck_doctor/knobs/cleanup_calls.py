"""`cleanup_calls`: whether `gc.collect()` and `empty_cache()` that the user's code calls in its steps do anything."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import Removal
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "cleanup_calls"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """What is called in the steps and where, the most often called first; empty where nothing was seen."""
    lines = (told(found, NAME) or {}).get("lines")
    kept = []
    for each in lines if isinstance(lines, list) else ():
        match each:
            case [str(name), str(file), int(line), int(count)]:
                kept.append((count, name, Site(file=file, line=line)))
    return [(name, site) for _, name, site in sorted(kept, key=lambda each: -each[0])]


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Removal("no gc.collect() or empty_cache() in the steps", calls),
)
