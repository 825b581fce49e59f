"""Speeds as they are told: samples a second where a loader hands them out, else steps a second.

A loop without a DataLoader takes steps and no samples that anybody counted; what a `Baseline` calls
`samples_per_second` is steps a second there, and has to be told as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Baseline, Window


@dataclass(frozen=True)
class Rate:
    """The unit of a training's speeds. `factor`: what a speed in samples a second is multiplied by to be in it. Samples
    are calls of the model where steps hold more or fewer of these."""

    noun: str
    factor: float = 1.0

    @property
    def short(self) -> str:
        """`samples/s`."""
        return f"{self.noun}/s"

    @property
    def long(self) -> str:
        """`samples a second`."""
        return f"{self.noun} a second"

    def of(self, samples_per_second: float) -> float:
        """A speed as the result holds it, in this unit."""
        return samples_per_second * self.factor

    def of_window(self, window: Window) -> float:
        """The speed in a window that was timed; NaN where none was."""
        return self.of(window.samples / window.seconds) if window.seconds > 0 else math.nan


def rate(baseline: Baseline | None) -> Rate:
    """The unit that suits this training; samples where nothing of it was measured."""
    if baseline is None or baseline.batch_size is not None:
        return Rate("samples")
    samples = baseline.samples_per_second
    return Rate("steps", baseline.steps_per_second / samples if samples > 0 and math.isfinite(samples) else 1.0)
