"""`step-jitter`: some steps take much longer than most, and they don't wait for data."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, SYMPTOM, Rule, Statement, Unjudged, clamp, milliseconds
from bottleneck_doctor.diagnose.compute._rare_work import is_rare
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.wording import words

JITTER = 1.5
"""95th percentile over median of the step time. Ours; a loop that does the same in every step stays below 1.2 on a
quiet machine."""
OUTLIERS = 0.02
"""Part of the steps beyond three standard deviations: a normal distribution has 0.3 %, one in which every fiftieth step
is late has this."""
UNEVEN = 2.0
"""Batches are uneven if the 95th percentile of the time to fetch one is this many times the mean or more. Ours; evenly
made ones stay below 1.5."""
DATA_EXPLAINS = 0.5
"""Waiting for data is called the cause if it accounts for more than this part of the spread."""
GROWS = 0.5
"""If steps take at least half as much longer as their batches are larger, longer steps do more work. Ours."""

DISTURBED = 1.5
"""If the window that timed single steps has a mean step this many times that of all timed windows, something else may
have run beside it, and then its steps say nothing about the others. Ours; windows of phases are taken again for the
same reason."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    steps = evidence.steps
    if steps is None or steps.steps < 20 or steps.p50_ms <= 0:
        return None
    if evidence.found.period > 1 or not evidence.found.periodic:
        return Unjudged("the steps of this loop may do different work, so it is normal that some take longer")
    if evidence.found.by_calls:
        return Unjudged("the model is called more often in some steps, so it is normal that they take longer")
    often = steps.outliers / steps.steps
    if steps.jitter < JITTER and often < OUTLIERS:
        return None
    spread = steps.p95_ms - steps.p50_ms
    of_data = spread > 0 and (steps.wait_p95_ms - steps.wait_mean_ms) > DATA_EXPLAINS * spread
    loading = evidence.as_written
    uneven = loading is not None and loading.fetch_p95_ms >= UNEVEN * loading.fetch_ms > 0
    others = _usage.others(evidence) or 0.0
    usual = evidence.baseline.step_ms if evidence.baseline is not None else 0.0
    if _was_disturbed(evidence):
        return Unjudged("other programs used more of the machine while each step was timed than they did otherwise")
    # Rare slow batches are why: one window holds more of them than another.
    by_chance = of_data and uneven and others <= words.OTHER_LOAD
    if 0 < DISTURBED * usual < steps.mean_ms and not by_chance:
        return Unjudged("the window in which each step was timed was disturbed: its steps took longer than usual")
    # Workers bring batches in bursts, however even their work is. That is waiting for data, which has its own findings.
    if of_data and not uneven:
        return None
    if not of_data and pairing.growth_with_size(evidence.windows) >= GROWS:
        return Unjudged("its batches differ in size, so it is normal that some steps take longer")
    if not of_data and others > words.OTHER_LOAD:
        return Unjudged(f"other programs kept {others:.1f} cores busy, and that alone makes steps differ")
    # That work has a finding of its own, which names it.
    if not of_data and is_rare(evidence):
        return None
    lost = clamp((steps.mean_ms - steps.p50_ms) / steps.mean_ms) if steps.mean_ms > 0 else 0.0
    if lost < MATTERS:
        return None
    beyond = ""
    if steps.outliers:
        beyond = f" {steps.outliers} of {words.count_text(steps.steps, 'step')} are more than three standard "
        beyond += "deviations from the mean."
    because = ""
    if of_data and loading is not None:
        because = (
            f" Most of the difference is waiting for data: one batch in twenty takes "
            f"{milliseconds(loading.fetch_p95_ms)} or more to fetch, instead of {milliseconds(loading.fetch_ms)} on "
            "average."
        )
    return Statement(
        sentence=(
            f"Half of the steps take {milliseconds(steps.p50_ms)} or less, but one in twenty takes "
            f"{milliseconds(steps.p95_ms)} or more ({steps.jitter:.1f} times as long).{beyond} If every step took "
            f"{milliseconds(steps.p50_ms)}, training would need {words.share_text(lost)} less time.{because}"
        ),
        figures={
            "jitter": steps.jitter,
            "p50_ms": steps.p50_ms,
            "p95_ms": steps.p95_ms,
            "outliers": float(steps.outliers),
            "share": lost,
        },
        weight=lost * evidence.in_steps,
        clause=f"loses {words.share_text(lost)} of the time to steps that take longer than the rest",
        site=fetch_site(evidence) if of_data else None,
        topic="data" if of_data else None,
        depth=CAUSE if of_data else None,
    )


def _was_disturbed(evidence: Evidence) -> bool:
    """Whether other programs wanted much more of the machine in each window that timed single steps than in others."""
    timed = [each for each in evidence.windows if each.mode == "phases" and each.status == "ok" and not each.setting]
    return bool(timed) and all(pairing.met_more_load(each, evidence.windows) for each in timed)


RULE = Rule(
    id="step-jitter",
    title="Steps differ a lot in length",
    topic="host",
    depth=SYMPTOM,
    needs=("steps",),
    judge=judge,
    source="https://en.wikipedia.org/wiki/68%E2%80%9395%E2%80%9399.7_rule",
    advice="Look for what happens only in some steps: samples that take much longer, logging every so many steps, "
    "inputs of different sizes, other programs.",
)
