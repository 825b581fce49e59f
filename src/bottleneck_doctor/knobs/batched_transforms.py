"""`batched_transforms`: whether the last transforms of the samples are done once to each batch."""

from __future__ import annotations

from typing import Any

from bottleneck_doctor.knobs._edits import Transformed, TransformedBatches
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "batched_transforms"
ON_DEVICE = "device"
"""The value with which batches get their transforms on the device, and not where they are made."""


def seen(found: Found) -> dict[str, Any] | None:
    """What the guest saw of this loop's transforms; None where it has not looked."""
    return told(found, NAME)


def _written(found: Found) -> Transformed:
    shown = seen(found) or {}
    transforms, on_batch, places = (
        tuple(each for each in shown.get(name, ()) if isinstance(each, str))
        for name in ("transforms", "on_batch", "places")
    )
    return Transformed(transforms, str(shown.get("instead", "")), on_batch, places)


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=TransformedBatches(
        "collate_fn=transformed", _written, on_device=(ON_DEVICE, "images = on_batch(images.to(device))")
    ),
    only_loads=True,
    idle_beside=("cached_samples",),
)
