"""`bucket_cap_mb`: up to how many MiB of gradients DistributedDataParallel exchanges at once."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.knobs._exchange import where_wrapped
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "bucket_cap_mb"
MIB = 1 << 20


@dataclass(frozen=True)
class Buckets:
    """MiB of all gradients, and MiB that a bucket may hold."""

    gradients: float
    cap: float


def buckets(found: Found) -> Buckets | None:
    """What was seen of them; None where nothing was."""
    seen = told(found, NAME) or {}
    gradients, cap = seen.get("gradients"), seen.get("cap")
    if not isinstance(gradients, int) or not isinstance(cap, int):
        return None
    return Buckets(gradients / MIB, cap / MIB)


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=where_wrapped("bucket_cap_mb={value}", "pass `bucket_cap_mb={value}`", takes_value=NAME),
    of_trainer=lambda value, found: {"ddp_bucket_cap_mb": value},
)
