"""The metrics of a check, with the default limit of each: by how much it may become worse, and what happens then."""

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
"""The smallest threshold that is accepted, by unit. The times of identical processes differ by about a percent on a
quiet machine, and nothing is taken to repeat to better than a tenth of a percent
(`speedups.MINIMUM_STANDARD_ERROR`)."""


@dataclass(frozen=True)
class MetricLimit:
    """How much worse a metric may become (relative, or points of a share), and what happens beyond.

    `most`: the absolute limit on the head, whatever the base has; bytes, or a share.
    """

    threshold: float
    level: Level
    most: float | None = None


@dataclass(frozen=True)
class Kind:
    """A metric: its title, its unit, and its limit if the user sets none.

    The step time includes the overhead of epochs. The host's memory is that of the training processes and their
    workers; the device's memory is that of the device that needs most.
    """

    title: str
    unit: Unit
    limit: MetricLimit


KINDS: Mapping[str, Kind] = {
    STEP_TIME: Kind("Step time", "seconds", MetricLimit(0.05, "error")),
    DATA_WAIT: Kind("Waiting for data", "share", MetricLimit(0.05, "warn")),
    HOST_MEMORY: Kind("Peak memory", "bytes", MetricLimit(0.10, "warn")),
    DEVICE_MEMORY: Kind("Peak device memory", "bytes", MetricLimit(0.10, "warn")),
    # What the allocator reserves follows the tensors in large steps, so it is judged only if somebody asks for it.
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
    """The limits of every metric: those of the project's configuration, else the defaults. `threshold`: that of the
    step time, from the command line.

    A metric with an absolute limit is meant to keep it, so its level is `error` unless the project says otherwise.
    Raises `DoctorError` `threshold-too-small`.
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


def configured_for_edit(config: Config, threshold: float | None, usual: float) -> dict[str, MetricLimit]:
    """The same for an edit whose worth is asked for: the step's time always counts. `usual`: the smallest difference of
    it that does, where nobody says another one."""
    limits = configured(config, threshold)
    said = config.metrics.get(STEP_TIME)
    step = limits[STEP_TIME].threshold if threshold is not None or (said and said.threshold is not None) else usual
    limits[STEP_TIME] = replace(limits[STEP_TIME], threshold=step, level="error")
    return limits


def refuse_too_small(threshold: float, name: str, subject: str = "A", of: str = "") -> None:
    """Raise `DoctorError` `threshold-too-small` if no check can judge this metric by so small a threshold.

    `subject`, `of`: the words before and after the threshold, which say where it was given and for which metric.
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
