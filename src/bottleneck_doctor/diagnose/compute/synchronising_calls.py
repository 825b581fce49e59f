"""`synchronising-calls`: values are taken out of tensors one by one, or such that the host has to wait for the
device."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import hottest_between
from bottleneck_doctor.diagnose._rule import (
    CAUSE,
    MATTERS,
    Rule,
    Statement,
    Unjudged,
    clamp,
    milliseconds,
    often,
    place,
    portion,
)
from bottleneck_doctor.documents.report import Site, SynchronisingCall
from bottleneck_doctor.system.paths import same_file
from bottleneck_doctor.wording import words

LOOP = 20.0
"""This many calls a step at one place stand in a loop over samples, and what the loop costs counts as theirs. Ours:
losses and metrics are a handful."""
OF_ONE_LOOP = 0.25
"""If no profile names the line of the work between the passes, calls that take this part of it count as all of it. What
Python does around each call (an index, a comparison) costs a few times as much as the call."""

ADVICE_OF_LIBRARY = "Look whether the library has an option that leaves this out, and call it less often if you can."


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    calls = evidence.synchronising or ()
    step = evidence.step_ms
    if not calls or step is None:
        return None
    worst = max(calls, key=lambda call: call.ms_per_step)
    spent = sum(call.ms_per_step for call in calls) / step
    if evidence.on_device:
        idle = evidence.operators.idle_share if evidence.operators is not None else None
        if idle is None:
            return Unjudged("how long the device is idle after these calls was not measured")
        # Waiting for a device that computes is no loss. Only the time in which the device is then idle is one.
        spent = min(spent, idle)
    else:
        spent = max(spent, _loop_share(evidence, worst, spent))
    if spent < MATTERS:
        return None
    site = Site(file=worst.path, line=worst.line) if worst.line > 0 else None
    others = len(calls) - 1
    total = sum(call.ms_per_step for call in calls)
    most = f", {portion(worst.ms_per_step / total)}" if total > 0 else ""
    these = f"Together with {words.count_text(others, 'other place')}, this takes" if others else "This takes"
    part = words.share_text(clamp(spent))
    where = f" at {place(site)}" if site is not None else ""
    if worst.library:
        where = f" in {worst.library}, called{where},"
    if evidence.on_device:
        lost = f". Each time, the host waits for the device, which is then idle for up to {part} of the time."
    elif spent > total / step:
        lost = f"; with the loop around it, {part} of a step."
    else:
        lost = f", which is {part} of the step."
    return Statement(
        sentence=(
            f"`{worst.name}`{where} takes a value out of a tensor {often(worst.per_step)} a step. "
            f"{these} {milliseconds(total)} a step{lost}"
        ),
        figures={
            "calls_per_step": worst.per_step,
            "ms_per_step": total,
            "share": clamp(spent),
            "places": float(len(calls)),
        },
        weight=clamp(spent) * evidence.in_steps,
        clause=f"spends {part} of the time on taking values out of tensors"
        + (f"{most} at {place(site)}" if site is not None else ""),
        site=site,
        advice=ADVICE_OF_LIBRARY if worst.library else "",
    )


def _loop_share(evidence: Evidence, call: SynchronisingCall, spent: float) -> float:
    """What the loop around a call takes, where that loop is the work between the passes. A loop in a library does more
    than take values."""
    shares = evidence.shares
    if shares is None or call.per_step < LOOP or call.library:
        return 0.0
    hot = hottest_between(evidence)
    if hot is None:
        return shares.between if spent >= OF_ONE_LOOP * shares.between else 0.0
    here = hot.site.line == call.line and same_file(hot.site.file, call.path)
    return shares.between * hot.share if here else 0.0


RULE = Rule(
    id="synchronising-calls",
    title="Values are taken out of tensors",
    topic="host",
    depth=CAUSE,
    needs=("step", "synchronising"),
    judge=judge,
    removable=True,
    source="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    advice="Compute on whole tensors, keep sums as tensors, and call `.item()` once every so many steps.",
    contradicts=("compute-bound",),
)
