"""`work-between-steps`: the loop does much that is neither loading, nor a pass, nor the optimizer."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import hottest_between
from bottleneck_doctor.diagnose._rule import LARGE, PART, PLACE, TUNING_GUIDE, Rule, Statement, at, milliseconds, place
from bottleneck_doctor.diagnose._rule import portion as portion_of
from bottleneck_doctor.render import words


def judge(evidence: Evidence) -> Statement | None:
    shares = evidence.shares
    # The collector runs where objects are made, and has a finding of its own.
    collected = evidence.garbage.share if evidence.garbage is not None else 0.0
    if shares is None or shares.between - collected < LARGE:
        return None
    hot = hottest_between(evidence)
    site = hot.site if hot is not None else None
    figures = {"between_share": shares.between}
    each = ""
    if evidence.step_ms is not None:
        figures["between_ms"] = shares.between * evidence.step_ms
        each = f", {milliseconds(figures['between_ms'])} a step"
    where = f"; most of that work is done at {place(site)}" if hot is not None and hot.share > 0.5 else ""
    if hot is not None and PART <= hot.share <= 0.5:
        where = f"; the largest part of that work is done at {place(site)}"
    named = f", {portion_of(hot.share)} at {place(site)}" if hot is not None else ""
    return Statement(
        sentence=(
            f"{words.share_text(shares.between)} of the time goes by in the training process between the passes, in "
            f"callbacks, metrics, logging or losses computed by plain functions{each}{where or at(site)}."
        ),
        figures=figures,
        weight=(shares.between - collected) * evidence.in_steps,
        clause=f"spends {words.share_text(shares.between)} of the time between its passes{named}",
        site=site,
    )


RULE = Rule(
    id="work-between-steps",
    title="Much work between the steps",
    topic="host",
    depth=PLACE,
    needs=("phases",),
    judge=judge,
    source=TUNING_GUIDE,
    advice="Do it every so many steps, keep figures as tensors until then, or leave it to another thread or process.",
    contradicts=("compute-bound",),
)
