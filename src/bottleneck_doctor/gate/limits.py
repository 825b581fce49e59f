"""What each metric may lose, and what a loss means: the defaults, and the metrics there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bottleneck_doctor.gate.document import Level, Unit
from bottleneck_doctor.render.words import PHASE_WORDS

STEP_TIME = "step_time"
DATA_WAIT = "data_wait"
HOST_MEMORY = "host_memory"
FIRST_STEP = "first_step"
EPOCH_TURN = "epoch_turn"
PHASE = "phase_"
"""Ids of phases begin with this."""

LEAST_THRESHOLD = 0.002
"""Nobody can hold a loop to less: no loop repeats to better than a tenth of a percent (stats.MINIMUM_STANDARD_ERROR)."""


@dataclass(frozen=True)
class Limit:
    """How much worse a metric may become (relative, or points of a share), and what happens beyond."""

    threshold: float
    level: Level


@dataclass(frozen=True)
class Kind:
    """A metric: what it is called and counted in, and its limit where the user sets none."""

    title: str
    unit: Unit
    limit: Limit


KINDS: Mapping[str, Kind] = {
    STEP_TIME: Kind("Step time, epochs included", "seconds", Limit(0.05, "error")),
    DATA_WAIT: Kind("Time spent waiting for data", "share", Limit(0.05, "warn")),
    HOST_MEMORY: Kind("Peak memory of the training process", "bytes", Limit(0.10, "warn")),
    FIRST_STEP: Kind("Start to first step", "seconds", Limit(0.20, "warn")),
    EPOCH_TURN: Kind("Starting and ending an epoch", "seconds", Limit(0.20, "warn")),
    **{
        PHASE + name: Kind(f"Phase: {title[0].lower()}{title[1:]}", "seconds", Limit(0.15, "warn"))
        for name, title in PHASE_WORDS.items()
    },
}

DEFAULTS: Mapping[str, Limit] = {name: kind.limit for name, kind in KINDS.items()}
