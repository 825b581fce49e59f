"""A part of a step that may vary less than the whole step: the waits for data in, whether they alone make the step
worse out. Pure.

If a training makes its batches itself, without workers, each step waits as long as making a batch takes, however fast
the rest of the step is. So if the wait grew by more than a step may grow, the step has become slower, even if noise in
its other parts hides it. With workers, a step waits for what they have not made in time. That wait also grows if the
rest of the step gets faster, so it says nothing about the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.check import StepPart
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.decide import InterimLook
from bottleneck_doctor.measure.side_pairs import Own, PairSample

PART_RATE = 0.25
"""The share of a step's error rate that its part gets from `decide.SURE_PAIRS` pairs on. With fewer, the step has all
of it."""
MOST_GAINED = 1.0
"""Standard errors by which the rest of a step may seem to be faster. Beyond that, it may have gained what the part
lost."""
TITLE = "Waiting for data"


def rate_of_step(pairs: int) -> float:
    """The share of its error rate that a step keeps in a look at this many pairs, if a part is tested as well."""
    return 1.0 if pairs < decide.SURE_PAIRS else 1.0 - PART_RATE


def has_part(pairs: Sequence[PairSample]) -> bool:
    """Whether both sides make their batches themselves."""
    return bool(pairs) and all(side.loads_itself for pair in pairs for side in (pair.base, pair.head))


@dataclass(frozen=True)
class DataPart:
    """Waiting for data over the pairs: seconds a step on both sides. As parts of the base's step: by how much the wait
    grew (`differences`), and by how much the rest of the step did (`rests`)."""

    base: Sequence[float]
    head: Sequence[float]
    differences: Sequence[float]
    rests: Sequence[float]
    owns: Sequence[Own | None]

    def weighted(self) -> decide.GateEstimate:
        """The estimate in which pairs with even windows weigh more."""
        return decide.weighed(self.differences, self.owns)

    def worse(self, threshold: float, look: InterimLook, error_rate: float) -> StepPart | None:
        """The part, if it certainly grew by more than `threshold` of a step and the rest does not seem to have gained
        as much; else None. `error_rate`: that of the step."""
        if look.pairs < decide.SURE_PAIRS or len(self.differences) < decide.SURE_PAIRS:
            return None
        rest = decide.estimate(self.rests)
        if rest.mean < -MOST_GAINED * rest.standard_error:
            return None
        seen = self.weighted()
        plain = decide.estimate(self.differences, self.owns)
        known, answer = decide.settle(plain, seen, threshold, look, PART_RATE * error_rate)
        if answer != "regression":
            return None
        heavy = decide.weights(self.owns)
        low, high = decide.interval(known, look)
        return StepPart(
            title=TITLE,
            base=decide.weighted_mean(self.base, heavy),
            head=decide.weighted_mean(self.head, heavy),
            change=known.mean,
            low=low,
            high=high,
        )


def data_part(pairs: Sequence[PairSample]) -> DataPart | None:
    """The waits of the pairs; None if they are not a part of their own, or were not seen."""
    if not has_part(pairs):
        return None
    waits = [pair.waits() for pair in pairs]
    return DataPart(
        base=[each.base for each in waits],
        head=[each.head for each in waits],
        differences=[each.share for each in waits],
        rests=[math.expm1(pair.ratio().log) - each.share for pair, each in zip(pairs, waits, strict=True)],
        owns=[each.own for each in waits],
    )
