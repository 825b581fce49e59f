"""What a measured fix shows of a cause: time that is gone under a setting was lost to what the setting changes."""

from __future__ import annotations

from collections.abc import Callable

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import clamp
from bottleneck_doctor.documents.report import Setting, Speedup


def measured_gain(evidence: Evidence, does: Callable[[Setting], bool]) -> Speedup | None:
    """The largest speedup of the fixes that are surely faster and whose setting does this; None if there is none."""
    gains = [
        fix.speedup
        for fix in evidence.fixes
        if fix.status == "faster" and fix.speedup is not None and does(fix.setting)
    ]
    return max(gains, key=lambda each: each.low, default=None)


def surely_lost(gain: Speedup | None) -> float:
    """The part of the time, 0 to 1, that is gone at least with such a gain."""
    return 0.0 if gain is None or gain.low <= 1.0 else clamp(1.0 - 1.0 / gain.low)
