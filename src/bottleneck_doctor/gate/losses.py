"""Whether both sides train alike: the losses of pairs of processes in, a word and two curves out. Pure.

Losses are compared at equal numbers of optimizer steps. How much they differ by chance depends on the program. If it is
seeded, both sides see the same samples from the same weights, and every pair repeats every other: then only the steps
tell. If it is not, every process has draws of its own, and pairs tell. So the loss is said to have moved only if both
agree that it did:

- over the steps, the mean difference is more than `MOST_ERRORS` of its standard error, as the losses of the training as
  written scatter around their own trend from step to step, as if all draws of the two sides were their own;
- over the pairs, Student's interval at `PAIR_LEVEL` on each side lies on one side of zero;
- it is at least `LEAST_PART` of the loss: rounding changes less. Where all pairs repeat one another, there is only one
  course of the training to compare with, and other draws of its random transforms may lead it elsewhere; there it has
  to be `LEAST_PART_OF_ONE`.

`tests/unit/test_gate_losses.py` simulates how often trainings that differ by chance alone are said to differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bottleneck_doctor.documents.check import Losses, LossPoint, LossVerdict
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.scatter import scatter
from bottleneck_doctor.statistics.spread import variance
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import SideWords

LEAST_STEPS = 20
"""Steps that both sides of a pair must have shown."""
MOST_ERRORS = 4.0
PAIR_LEVEL = 0.005
LEAST_PART = 0.05
LEAST_PART_OF_ONE = 0.2
MOST_ALIKE = 0.2
"""Relative difference up to which losses that did not surely move are called alike. Beyond it, chance is so large that
it could hide a training that is spoilt."""
SAME = 1e-6
"""Relative difference up to which two losses are the same."""
SAMPLES = 0.01
"""Part by which the samples of a step may differ between the sides."""
MANY = 10.0
"""Relative difference from which on it is not told exactly."""
LARGEST = 2.0
"""Relative difference of a pair beyond which it counts as this. A training that diverges differs by other powers of ten
in every pair, and by nothing that has a mean."""
POINTS = 60
"""Points of a curve that is kept."""


@dataclass(frozen=True)
class _Pair:
    """Losses of one pair at the steps that both sides made: as written, and changed."""

    steps: list[int]
    base: list[float]
    head: list[float]

    @property
    def difference(self) -> float:
        """Mean of what the head's loss is larger by."""
        return fmean(head - base for base, head in zip(self.base, self.head, strict=True))

    @property
    def error(self) -> float:
        """Standard error of it, if every step of both sides had draws of its own."""
        return math.sqrt(2 / len(self.steps)) * scatter(self.base)

    @property
    def level(self) -> float:
        """How large the losses as written are."""
        return fmean(abs(each) for each in self.base)


def compared(pairs: Sequence[PairSample], sides: SideWords) -> Losses | None:
    """What the losses say; None where no process told any."""
    told = [pair for pair in pairs if pair.base.losses and pair.head.losses]
    if not told:
        return None
    matched = [_matched(pair.base.losses, pair.head.losses) for pair in told]
    usable = [pair for pair in matched if len(pair.steps) >= LEAST_STEPS]
    steps = sum(len(pair.steps) for pair in usable)
    if not usable or _holds_more(told):
        why = "a step holds other samples" if _holds_more(told) else "both sides made too few of the same steps"
        return Losses(verdict="unknown", sentence=f"Losses can't be compared: {why}.", steps=steps)
    verdict, difference = _verdict(usable)
    return Losses(
        verdict=verdict,
        sentence=_sentence(verdict, difference, steps, len(usable), sides),
        steps=steps,
        difference=difference if difference is None or math.isfinite(difference) else None,
        curve=_curve(usable[0]),
    )


def _matched(base: Mapping[int, float], head: Mapping[int, float]) -> _Pair:
    steps = sorted(base.keys() & head.keys())
    return _Pair(steps, [base[step] for step in steps], [head[step] for step in steps])


def _holds_more(pairs: Sequence[PairSample]) -> bool:
    """Whether a step of the head holds more samples, or fewer."""
    both = [pair for pair in pairs if pair.base.has_loader and pair.head.has_loader and pair.rounds()]
    return any(abs(pair.head.per_step() / pair.base.per_step() - 1) > SAMPLES for pair in both)


def _verdict(pairs: Sequence[_Pair]) -> tuple[LossVerdict, float | None]:
    """The word, and the relative difference that it rests on."""
    base_fine = all(math.isfinite(each) for pair in pairs for each in pair.base)
    if not base_fine:
        return "unknown", None
    # An unstable training may break now and then by chance.
    whole = [pair for pair in pairs if all(math.isfinite(each) for each in pair.head)]
    if not whole:
        return "not_finite", None
    pairs = whole
    level = fmean(pair.level for pair in pairs)
    if not level:
        return "unknown", None
    difference = fmean(pair.difference for pair in pairs) / level
    worst = max(
        abs(head - base) / max(abs(base), abs(head), 1e-12)
        for pair in pairs
        for base, head in zip(pair.base, pair.head, strict=True)
    )
    if worst <= SAME:
        return "same", difference
    far = median(abs(pair.difference) / pair.error if pair.error else math.inf for pair in pairs)
    least = LEAST_PART_OF_ONE if _repeated(pairs) else LEAST_PART
    moved = abs(difference) >= least and far > MOST_ERRORS and _on_one_side(pairs)
    if moved:
        return "moved", difference
    return ("alike" if abs(difference) <= MOST_ALIKE else "unknown"), difference


def _repeated(pairs: Sequence[_Pair]) -> bool:
    """Whether the training as written takes the same course in every pair."""
    first = dict(zip(pairs[0].steps, pairs[0].base, strict=True))
    return all(
        math.isclose(loss, first[step], rel_tol=SAME)
        for pair in pairs[1:]
        for step, loss in zip(pair.steps, pair.base, strict=True)
        if step in first
    )


def _on_one_side(pairs: Sequence[_Pair]) -> bool:
    """Whether chance between pairs leaves the difference on one side of zero. Of a single pair nobody knows."""
    differences = [max(-LARGEST, min(LARGEST, pair.difference / (pair.level or 1.0))) for pair in pairs]
    if len(differences) < 2:
        return False
    error = math.sqrt(variance(differences) / len(differences))
    half = student_t_quantile(1 - PAIR_LEVEL, len(differences) - 1) * error
    return abs(fmean(differences)) > half


def _sentence(verdict: LossVerdict, difference: float | None, steps: int, pairs: int, sides: SideWords) -> str:
    over = f"over {steps} steps in {words.count_text(pairs, 'pair')}"
    if verdict == "same":
        return f"The losses are the same {over}."
    if verdict == "alike":
        assert difference is not None
        return f"The losses differ by {words.share_text(abs(difference))} {over}, no more than chance and rounding do."
    if verdict == "moved":
        assert difference is not None
        which = "higher" if difference > 0 else "lower"
        by = words.share_text(abs(difference)) if abs(difference) < MANY else f"more than {MANY:.0f} times"
        return f"{words.capitalised(sides.head)} trains to another loss: {by} {which} {over}."
    if verdict == "not_finite":
        return (
            f"{words.capitalised(sides.head)} trains to a loss that is no number any more, and the other side does not."
        )
    if difference is not None:
        by = words.share_text(abs(difference)) if abs(difference) < MANY else f"more than {MANY:.0f} times"
        return f"The losses differ by {by} {over}. That may be chance or not: longer runs would tell."
    return "Losses can't be compared: they are zero, or no numbers, on both sides."


def _curve(pair: _Pair) -> list[LossPoint]:
    """The losses of a pair, thinned to means over neighbouring steps."""
    size = math.ceil(len(pair.steps) / POINTS)
    points = []
    for at in range(0, len(pair.steps), size):
        base, head = pair.base[at : at + size], pair.head[at : at + size]
        points.append(LossPoint(step=pair.steps[at], base=_mean(base), head=_mean(head)))
    return points


def _mean(values: Sequence[float]) -> float | None:
    mean = fmean(values)
    return mean if math.isfinite(mean) else None
