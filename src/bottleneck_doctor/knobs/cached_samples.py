"""`cached_samples`: whether the loader takes its samples out of a list of all of them, prepared before training."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import ListedSamples
from bottleneck_doctor.knobs._spec import KnobSpec, prepared, told, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "cached_samples"


def obstacle(found: Found) -> str | None:
    """Why samples can't be prepared once, "" where they can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


def repeats(found: Found) -> bool | None:
    """Whether a sample is the same in each epoch; None if nobody knows."""
    seen = (told(found, NAME) or {}).get("repeats")
    return seen if isinstance(seen, bool) else None


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=ListedSamples("dataset=[dataset[index] for index in range(len(dataset))]"),
    only_loads=True,
    in_part=True,
    prepares=prepared(NAME),
)
