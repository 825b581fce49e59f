"""Whether the device is idle although its data is there, and whether launching kernels is the reason.

Rules about the device use this, and so do rules about the host: a busy host costs nothing while the device computes.
"""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import PART, clamp

LAUNCH_US = 10.0
"""If a mean kernel takes fewer microseconds, launching it (5 µs and more on the host) takes about as long as running
it. https://developer.nvidia.com/blog/cuda-graphs/"""
MANY_KERNELS = 100.0
"""With this many kernels a step, launching them is worth a statement. Ours: it takes half a millisecond or more."""


def stands_still(evidence: Evidence) -> float | None:
    """The part of the time in which the device is idle though its data is there; None where that is not known."""
    profile, shares = evidence.operators, evidence.shares
    if not evidence.on_device or profile is None or profile.idle_share is None:
        return None
    return clamp(profile.idle_share - (shares.data_wait if shares is not None else 0.0))


def launch_limited(evidence: Evidence) -> bool:
    """Whether the device is idle because the host can't launch many small kernels quickly enough."""
    profile, still = evidence.operators, stands_still(evidence)
    if profile is None or still is None or profile.kernel_mean_us is None or profile.kernels_per_step is None:
        return False
    return still >= PART and profile.kernel_mean_us < LAUNCH_US and profile.kernels_per_step >= MANY_KERNELS
