"""`work-between-steps`: much of the loop's time is neither loading, nor a pass, nor the optimizer."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._met import met_between
from bottleneck_doctor.diagnose._places import hottest_between, sampled_share
from bottleneck_doctor.diagnose._rule import (
    LARGE,
    PART,
    PLACE,
    TUNING_GUIDE,
    Rule,
    Statement,
    Unjudged,
    milliseconds,
    place,
)
from bottleneck_doctor.diagnose._rule import portion as portion_of
from bottleneck_doctor.diagnose.compute._operators import forward_of_no_module
from bottleneck_doctor.diagnose.compute._own_loaders import making
from bottleneck_doctor.diagnose.compute._rare_work import is_rare
from bottleneck_doctor.wording import words

MAKING = (
    "Prepare the batches, or what of them is the same each time, once before training, and keep it: some libraries "
    "have an option for that, such as `cache_data`. Or make them in other processes, as the workers of a `DataLoader` "
    "do."
)

SELDOM = "Make this work faster, do it less often, or prepare it in another thread or process while training goes on."


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    shares = evidence.shares
    # The collector runs wherever objects are made, and has its own finding.
    collected = evidence.garbage.share if evidence.garbage is not None else 0.0
    if shares is None:
        return None
    forward = forward_of_no_module(evidence)
    if forward is None:
        return Unjudged("the model is not a module, so its forward pass can't be told apart from the loop's other work")
    between = shares.between - forward
    if not evidence.found.periodic:
        # Without a regular period, one window may include work that the next does not, so two windows have to show it.
        seen = sampled_share(evidence, "between")
        if seen is None:
            return Unjudged("no regular period was seen in the steps, and no second window confirms what one showed")
        between = min(between, seen)
    if between - collected < LARGE:
        return None
    # Where the model is no module, the hottest line may well be its forward pass.
    hot = hottest_between(evidence) if evidence.found.has_root_module else None
    # Stacks are sampled between epochs, too. If the loop works longer there than in its steps, they tell of that.
    whole, pause = evidence.whole_epoch_seconds, evidence.pause
    mostly_pauses = bool(whole and pause is not None and pause.rest / whole > between * evidence.in_steps)
    if hot is not None and (hot.share < PART or (mostly_pauses and not hot.listed)):
        hot = None
    site = hot.site if hot is not None else None
    figures = {"between_share": between}
    each = ""
    if evidence.step_ms is not None:
        figures["between_ms"] = between * evidence.step_ms
        each = f", {milliseconds(figures['between_ms'])} a step"
    # Samples and lines come from different windows, which may differ if training is uneven.
    made = None if mostly_pauses else making(evidence)
    met = met_between(evidence) if made is None and not mostly_pauses and (hot is None or not hot.listed) else made
    inside = met.sentence("this work") if met is not None else ""
    where = ""
    if hot is not None:
        where = f" {'Most' if hot.share > 0.5 else 'The largest part'} of this work is done at {place(site)}."
    named = f", {portion_of(hot.share)} at {place(site)}" if hot is not None else ""
    work = "work other than loading, the model's passes and the optimizer"
    if made is not None:
        work, named = "work other than the model's passes and the optimizer", ", most of it making batches"
    seldom, advice, steps = "", MAKING if made is not None else "", evidence.steps
    if made is None and steps is not None and is_rare(evidence):
        advice = SELDOM
        seldom = (
            f" Only some steps do it: half of the steps take {milliseconds(steps.p50_ms)} or less, and the mean is "
            f"{milliseconds(steps.mean_ms)}."
        )
    return Statement(
        sentence=(
            f"{words.capitalised(work)} takes {words.share_text(between)} of the time{each}.{where}{seldom}{inside}"
        ),
        figures=figures,
        weight=(between - collected) * evidence.in_steps,
        clause=f"spends {words.share_text(between)} of the time on {work}{named}",
        site=site,
        advice=advice,
    )


RULE = Rule(
    id="work-between-steps",
    title="Much work between the steps",
    topic="host",
    depth=PLACE,
    needs=("phases",),
    judge=judge,
    removable=True,
    source=TUNING_GUIDE,
    advice="Do this work only every so many steps, keep figures as tensors until then, or move it to another thread or "
    "process.",
    fixes=("distribution-checks",),
    contradicts=("compute-bound",),
)
