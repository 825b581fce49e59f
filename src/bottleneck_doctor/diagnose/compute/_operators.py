"""What torch.profiler's table of operations shows about the model's passes. All rules about them use this module."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import clamp
from bottleneck_doctor.documents.report import DeviceProfile

TINY_US = 10.0
"""An operation that takes fewer microseconds itself is mostly overhead: Python and the dispatcher take some
microseconds a call (https://horace.io/brrr_intro.html), and the profiler takes about one more."""

PRODUCTS = ("mm", "conv", "linear", "attention", "lstm", "gru", "rnn")
"""Parts of the names of operations that multiply matrices."""


def outside_operators(profile: DeviceProfile, passes: float) -> float:
    """The part of the passes that no operation of `TINY_US` or more accounts for; `passes` is their share of a step.

    Ranges that torch records around its own Python code (`Optimizer.step#SGD.step`) are not operations. Operations
    outside the passes count as if they were inside, so the result is never too large.
    """
    if profile.seconds <= 0 or passes <= 0:
        return 0.0
    return clamp(1.0 - _in_operators(profile) / passes)


def slowest_operation(evidence: Evidence) -> tuple[str, float] | None:
    """The operation that takes more of a step's time on the CPU than any other, and its part of it. None where it is a
    product or a convolution, which is what networks are expected to compute, and where the model is on a device."""
    profile = evidence.operators
    if profile is None or evidence.on_device or profile.seconds <= 0:
        return None
    operations = [each for each in profile.operators if each.name.startswith("aten::")]
    slowest = max(operations, key=lambda each: each.cpu_ms, default=None)
    if slowest is None or any(word in slowest.name for word in PRODUCTS):
        return None
    return slowest.name, slowest.cpu_ms / (1000 * profile.seconds)


def _in_operators(profile: DeviceProfile) -> float:
    """The part of a step that operations of `TINY_US` or more take on the host."""
    milliseconds = sum(
        each.cpu_ms
        for each in profile.operators
        if "#" not in each.name and each.calls > 0 and 1000 * each.cpu_ms / each.calls >= TINY_US
    )
    return milliseconds / (1000 * profile.seconds)


def forward_of_no_module(evidence: Evidence) -> float | None:
    """If the model is not a module: the part of a step that its forward pass takes, at least.

    The guest does not see such a pass begin or end. So what operations take beyond the passes that it sees counts as
    forward. 0 if the model is a module; None if the operations are not known.
    """
    shares, profile = evidence.shares, evidence.operators
    if evidence.found.has_root_module:
        return 0.0
    if shares is None or profile is None or profile.seconds <= 0:
        return None
    seen = shares.forward + shares.backward + shares.optimizer + shares.zero_grad
    return min(shares.between, clamp(_in_operators(profile) - seen))
