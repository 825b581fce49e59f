"""`batched_fetch`: whether the loader takes whole batches out of its dataset, by one list of indices each."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import WholeBatches
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "batched_fetch"

KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=WholeBatches("sampler=BatchSampler(...), batch_size=None"),
    only_loads=True,
)
