"""What an examination leaves open, but thinks likely: asked of the program with the change made, whose processes had no
part in that guess. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from bottleneck_doctor.confirm.instead import claimed
from bottleneck_doctor.documents.report import FixOutcome, Result
from bottleneck_doctor.wording import doubt, ranking

WORTH_PAIRS = 1.1
"""What it has to look like, in times as fast. A smaller gain would need more pairs than there is time for."""


def supposed(result: Result) -> Result | None:
    """The result as if the likeliest of its open fixes was what it promises; None if something is promised, or nothing
    is likely enough."""
    opening, told, _ = result.verdict.sentence.partition(doubt.OPEN)
    best = _likeliest(result)
    if best is None or not told:
        return None
    taken = replace(best, status="faster", reason="")
    sentence = f"{opening}{claimed(taken, result)}"
    return replace(
        result,
        fixes=[taken if each is best else each for each in result.fixes],
        verdict=replace(result.verdict, sentence=sentence, fix=taken.id, together=False, settle=None),
    )


def settled(result: Result, asked: Result) -> Result:
    """What is known now. `result`: what the examination said; `asked`: the same as `supposed` has it, with what the
    changed program said of that. Where it is not faster for sure, its figure stands behind what is open."""
    confirmation = asked.confirmation
    if confirmation is None or confirmation.speedup is None:
        return result
    if confirmation.outcome in ranking.CONFIRMED:
        return asked
    sentence = f"{result.verdict.sentence} {confirmation.sentence}"
    return replace(result, verdict=replace(result.verdict, sentence=sentence))


def _likeliest(result: Result) -> FixOutcome | None:
    fix = next(iter(ranking.open_fixes(result)), None)  # None are open where something is promised.
    if fix is None or fix.speedup is None or not WORTH_PAIRS <= fix.speedup.estimate < math.inf:
        return None
    return fix if (fix.chance or 0.0) >= ranking.LIKELY else None
