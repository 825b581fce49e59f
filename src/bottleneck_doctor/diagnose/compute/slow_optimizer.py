"""`slow-optimizer`: the optimizer's step takes a good part of the time."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import hottest_of, refined_below_the_loop
from bottleneck_doctor.diagnose._rule import CAUSE, PART, TUNING_GUIDE, Rule, Statement, at, milliseconds
from bottleneck_doctor.wording import words

HEAVY = 0.2
"""Share of a step. Ours: a fused or foreach optimizer goes over parameters and gradients once. The passes touch them
several times for every sample, so that is a tenth of a step or less."""


def judge(evidence: Evidence) -> Statement | None:
    shares = evidence.shares
    if shares is None or shares.optimizer < HEAVY:
        return None
    hot = hottest_of(evidence, "optimizer")
    # Where the optimizer is the user's own its line is named; else the one that calls it.
    site = refined_below_the_loop(evidence, hot.site) if hot is not None and hot.share >= PART else None
    each = f", {milliseconds(shares.optimizer * evidence.step_ms)} a step" if evidence.step_ms else ""
    return Statement(
        sentence=f"The optimizer{at(site)} takes {words.share_text(shares.optimizer)} of the time{each}.",
        figures={"optimizer_share": shares.optimizer},
        weight=shares.optimizer * evidence.in_steps,
        clause=f"spends {words.share_text(shares.optimizer)} of the time in the optimizer{at(site)}",
        site=site,
    )


RULE = Rule(
    id="slow-optimizer",
    title="The optimizer is slow",
    topic="host",
    depth=CAUSE,
    needs=("phases",),
    judge=judge,
    removable=True,
    source=TUNING_GUIDE,
    advice="Pass `fused=True` or `foreach=True` if the optimizer takes it; in an optimizer of your own, update all "
    "parameters at once. Or accumulate gradients over several batches.",
    contradicts=("compute-bound",),
)
