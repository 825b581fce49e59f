"""What each metric may lose, and what a loss means: the defaults, and the metrics there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bottleneck_doctor.config import Config
from bottleneck_doctor.documents.check import (
    DATA_WAIT,
    DEVICE_MEMORY,
    DEVICE_RESERVED,
    EPOCH_OVERHEAD,
    FIRST_STEP,
    HOST_MEMORY,
    PHASE,
    STEP_TIME,
    Level,
    Unit,
)
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.wording.words import PHASE_WORDS

LEAST_THRESHOLD: Mapping[Unit, float] = {"seconds": 0.01, "bytes": 0.002, "share": 0.002}
"""Nothing is held to less, by unit. Identical processes differ by about a percent in their times where the machine is
quiet, and nothing is taken to repeat to better than a tenth of a percent (`stats.MINIMUM_STANDARD_ERROR`)."""


@dataclass(frozen=True)
class MetricLimit:
    """How much worse a metric may become (relative, or points of a share), and what happens beyond.

    `most`: what it may be at most on the head, whatever it is on the base; bytes, or a share.
    """

    threshold: float
    level: Level
    most: float | None = None


@dataclass(frozen=True)
class Kind:
    """A metric: what it is called and counted in, and its limit where the user sets none.

    The step time is that of whole epochs, the host's memory that of the processes that train and their workers, the
    device's that of the device that needs most.
    """

    title: str
    unit: Unit
    limit: MetricLimit


KINDS: Mapping[str, Kind] = {
    STEP_TIME: Kind("Step time", "seconds", MetricLimit(0.05, "error")),
    DATA_WAIT: Kind("Waiting for data", "share", MetricLimit(0.05, "warn")),
    HOST_MEMORY: Kind("Peak memory", "bytes", MetricLimit(0.10, "warn")),
    DEVICE_MEMORY: Kind("Peak device memory", "bytes", MetricLimit(0.10, "warn")),
    # What the allocator holds follows the tensors in large steps, so it is judged where somebody asks for it.
    DEVICE_RESERVED: Kind("Device memory reserved", "bytes", MetricLimit(0.10, "off")),
    FIRST_STEP: Kind("Start to first step", "seconds", MetricLimit(0.20, "warn")),
    EPOCH_OVERHEAD: Kind("Epoch overhead", "seconds", MetricLimit(0.20, "warn")),
    **{
        PHASE + name: Kind(f"Phase: {title[0].lower()}{title[1:]}", "seconds", MetricLimit(0.15, "warn"))
        for name, title in PHASE_WORDS.items()
    },
}

UNITS: Mapping[str, Unit] = {name: kind.unit for name, kind in KINDS.items()}
DEFAULTS: Mapping[str, MetricLimit] = {name: kind.limit for name, kind in KINDS.items()}


def configured(config: Config, threshold: float | None) -> dict[str, MetricLimit]:
    """The limits of every metric: as a project says, else ours. `threshold`: of the step time, by the command line.

    What has an absolute limit is meant to keep it, so its level is `error` unless the project says otherwise. Raises
    `DoctorError` `threshold-too-small`.
    """
    limits = dict(DEFAULTS)
    for name, said in config.metrics.items():
        if said.threshold is not None:
            refuse_too_small(said.threshold, name, f"{config.source}: a", f" for {name}")
        level = "error" if said.level is None and said.most is not None else said.level
        given: dict[str, Any] = {"threshold": said.threshold, "level": level, "most": said.most}
        limits[name] = replace(limits[name], **{key: value for key, value in given.items() if value is not None})
    if threshold is not None:
        refuse_too_small(threshold, STEP_TIME)
        limits[STEP_TIME] = replace(limits[STEP_TIME], threshold=threshold)
    return limits


def refuse_too_small(threshold: float, name: str, subject: str = "A", of: str = "") -> None:
    """Raise `DoctorError` `threshold-too-small` where no check can promise to hold this metric to that.

    `subject`, `of`: the words before and after the threshold, which say where it was given and for what.
    """
    least = LEAST_THRESHOLD[KINDS[name].unit]
    if threshold >= least:
        return
    if KINDS[name].unit == "seconds":
        why = (
            f"Even processes of the same revision differ by about {100 * least:g}%, so no check can promise to tell "
            "a slowdown that small from chance."
        )
        way = " To find slowdowns that are small and add up, compare with an older revision, such as the last release."
    else:
        why, way = "No training repeats that exactly.", " Each check says how small a change it can detect."
    raise DoctorError(
        "threshold-too-small",
        f"{subject} threshold of {100 * threshold:g}%{of} is too small. {why}",
        f"Give {100 * least:g}% or more.{way}",
    )
