"""What the measured speeds with different numbers of workers show. All findings use it, so that no two disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import Speedup, WorkerPoint
from bottleneck_doctor.statistics.speedups import SESSIONS_OF_A_LARGE_CLAIM

WORTHWHILE = 1.05
"""Another number of workers is worth a statement at this speedup or more. Ours: `MATTERS` as a ratio."""


@dataclass(frozen=True)
class Better:
    """A number of workers that was measured to be faster than the user's own."""

    direction: Literal["more", "fewer"]
    own: WorkerPoint
    point: WorkerPoint

    @property
    def gain(self) -> float:
        """The share of the training's time that it saves."""
        return 1.0 - 1.0 / self.point.speedup.estimate


def clearly_faster(evidence: Evidence, speedup: Speedup) -> bool:
    """Whether a finding may rest on it: large enough, clear of 1 and of noise, from enough processes for a claim.

    No finding claims what the verdict can't claim.
    """
    floor = evidence.noise.floor if evidence.noise is not None else 0.0
    enough = speedup.sessions >= SESSIONS_OF_A_LARGE_CLAIM
    return enough and speedup.estimate >= WORTHWHILE and speedup.low > 1.0 + max(0.0, floor)


def better_workers(evidence: Evidence) -> Better | None:
    """The fastest number of workers, where it clearly beats the user's own."""
    if evidence.workers is None:
        return None
    own = next((point for point in evidence.workers.curve if point.is_baseline), None)
    if own is None:
        return None
    others = [
        point for point in evidence.workers.curve if not point.is_baseline and point.num_workers != own.num_workers
    ]
    faster = [point for point in others if clearly_faster(evidence, point.speedup)]
    if not faster:
        return None
    best = max(faster, key=lambda point: point.speedup.estimate)
    return Better("more" if best.num_workers > own.num_workers else "fewer", own, best)


def without_workers(evidence: Evidence) -> WorkerPoint | None:
    """The point of the curve without workers, where it was measured."""
    curve = evidence.workers.curve if evidence.workers is not None else []
    return next((point for point in curve if point.num_workers == 0 and not point.is_baseline), None)
