"""A part of a step that may be surer than all of it: what pairs waited for data in, whether that alone makes a step
worse out. Pure.

Where a training makes its batches itself, in no worker, waiting for data is a stretch of its own in each step: it takes
what making a batch takes, however fast the rest is. So where it grew by more than a step may, a step has become slower
although the luck of its other parts hides it. With workers a step waits for what they have not made in time, which
grows too if the rest gets faster: then it says nothing of the step.
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
"""What of a step's error rate belongs to its part, from `decide.SURE_PAIRS` pairs on; before, all is the step's."""
MOST_GAINED = 1.0
"""Standard errors by which the rest of a step may seem to be faster. Beyond, it may have gained what the part lost."""
TITLE = "Waiting for data"


def rate_of_step(pairs: int) -> float:
    """What of its error rate a step has for itself in a look at so many pairs, where a part is looked at as well."""
    return 1.0 if pairs < decide.SURE_PAIRS else 1.0 - PART_RATE


def has_part(pairs: Sequence[PairSample]) -> bool:
    """Whether both sides make their batches themselves."""
    return bool(pairs) and all(side.loads_itself for pair in pairs for side in (pair.base, pair.head))


@dataclass(frozen=True)
class DataPart:
    """Waiting for data over the pairs: seconds a step on both sides, and by what part of the base's step it grew
    (`differences`), and all the rest of a step (`rests`)."""

    base: Sequence[float]
    head: Sequence[float]
    differences: Sequence[float]
    rests: Sequence[float]
    owns: Sequence[Own | None]

    def weighted(self) -> decide.GateEstimate:
        """What calm pairs say more than restless ones."""
        return decide.weighed(self.differences, self.owns)

    def worse(self, threshold: float, look: InterimLook, error_rate: float) -> StepPart | None:
        """The part if it alone makes a step worse by more than `threshold` of it, for certain, and the rest seems not
        to have gained what it lost. `error_rate`: that of the step."""
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
    """What the pairs waited; None where that is no part of a step of its own, or was not seen."""
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
