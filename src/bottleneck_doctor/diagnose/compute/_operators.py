"""What torch.profiler's table of operations says of the model's passes: one answer for all rules about them."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import clamp
from bottleneck_doctor.documents.report import DeviceProfile

TINY_US = 10.0
"""Microseconds of its own below which an operation is mostly overhead: Python and dispatcher take some microseconds a
call (https://horace.io/brrr_intro.html), the profiler about one more."""


def outside_operators(profile: DeviceProfile, passes: float) -> float:
    """The part of the passes that no operation of `TINY_US` or more accounts for; `passes` is their share of a step.

    Ranges that torch records around Python code of its own (`Optimizer.step#SGD.step`) are not operations. Operations
    outside of the passes are counted as if they lay in them, so that this is never too much.
    """
    if profile.seconds <= 0 or passes <= 0:
        return 0.0
    return clamp(1.0 - _in_operators(profile) / passes)


def _in_operators(profile: DeviceProfile) -> float:
    """The part of a step that operations of `TINY_US` or more take on the host."""
    milliseconds = sum(
        each.cpu_ms
        for each in profile.operators
        if "#" not in each.name and each.calls > 0 and 1000 * each.cpu_ms / each.calls >= TINY_US
    )
    return milliseconds / (1000 * profile.seconds)


def forward_of_no_module(evidence: Evidence) -> float | None:
    """The part of a step that the forward pass of a model which is no module takes, at least.

    Such a pass is not seen to begin or to end: what operations take beyond the passes that are seen is it. 0 where the
    model is a module; None where the operations are not known.
    """
    shares, profile = evidence.shares, evidence.operators
    if evidence.found.has_root_module:
        return 0.0
    if shares is None or profile is None or profile.seconds <= 0:
        return None
    seen = shares.forward + shares.backward + shares.optimizer + shares.zero_grad
    return min(shares.between, clamp(_in_operators(profile) - seen))
