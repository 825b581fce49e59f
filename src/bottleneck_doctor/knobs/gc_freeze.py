"""`gc_freeze`: objects that are made until Python's garbage collector runs, with all that was there before the loop put
out of its sight."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import BeforeLoop
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "gc_freeze"
THRESHOLD = 50_000
"""Objects made and not let go. Walking so many takes some milliseconds; Python's own 700 come together in any step."""


def collecting(found: Found) -> float | None:
    """The part of the time that the collector took until the loop was found; None where nobody watched it."""
    seen = _seen(found)
    share = seen.get("share")
    return float(share) if isinstance(share, int | float) and not isinstance(share, bool) else None


def is_off(found: Found) -> bool:
    """Whether the script has switched the collector off."""
    return _seen(found).get("on") is False


def is_frozen(found: Found) -> bool:
    """Whether the script has called `gc.freeze()`."""
    return _seen(found).get("frozen") is True


def _seen(found: Found) -> dict[str, object]:
    return told(found, NAME) or {}


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    collects=True,
    edit=BeforeLoop(("gc.collect()", "gc.freeze()", "gc.set_threshold({value})"), imports="gc"),
)
