"""`frequent-evaluation`: the program evaluates in the midst of its epochs or of an endless one, for a good part of the
time."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import SEEN_OFTEN, Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement
from bottleneck_doctor.diagnose.epochs._gradients import gradients_kept
from bottleneck_doctor.wording import words

ADVICE = (
    "Evaluate after more steps, or on fewer batches. In transformers, raise `eval_steps`; in Lightning, "
    "`val_check_interval`, or lower `limit_val_batches`."
)

ADVICE_BY_MODE = "If it evaluates there, let it do so after more steps, or on fewer batches."
"""Where it may also generate samples, or collect what it trains on next."""

ADVICE_WITHIN_STEPS = "If it evaluates there, let it do so after every tenth step, or less often."

ADVICE_BETWEEN_STEPS = "If it evaluates or draws there, let it do so after more steps of the optimizer."

EACH = 1.2
"""Steps to an evaluation up to which each has one: a window may begin or end between a step and its evaluation."""


def judge(evidence: Evidence) -> Statement | None:
    seen, step = evidence.interruption, evidence.step_ms
    if seen is None or not step:
        return _within_steps(evidence)
    share = evidence.evaluating_seconds / evidence.seconds_of_a_step
    if share < LARGE:
        return None
    steps = words.count_text(round(seen.every), "step")
    (kept, without), long = gradients_kept(seen), words.duration_text(seen.seconds)
    does = f"Within an epoch, the program evaluates about once in {steps}, for {long}."
    these, what, where, advice = "steps", "evaluations are", "in evaluations within its epochs", ADVICE
    if evidence.found.epoch_length is None:
        # What the program calls an epoch is not seen then, as where a loader of its own never ends.
        does, where = f"About once in {steps}, the program evaluates, for {long}.", "in evaluations"
    if seen.by_mode:
        does = f"About once in {steps}, the program puts its model into evaluation mode, for {long}."
        what, where, advice = "that is", "with the model in evaluation mode", ADVICE_BY_MODE
    if evidence.found.of_closure:
        calls = words.count_text(round(seen.every), "call")
        does = f"After {calls} of its closure, the optimizer has made a step, and other work follows for {long}."
        these, what, where, advice = "calls", "that is", "between the optimizer's steps", ADVICE_BETWEEN_STEPS
    return Statement(
        sentence=(
            f"{does} These {these} take {words.duration_text(seen.every * step / 1000)}, so {what} "
            f"{words.share_text(share)} of the time.{kept}"
        ),
        figures=_figures(share, seen.seconds, seen.every, seen.seen),
        weight=share,
        advice=f"{without}{advice}",
        clause=f"spends {words.share_text(share)} of the time {where}",
    )


def _within_steps(evidence: Evidence) -> Statement | None:
    """A loop that evaluates after each of its steps, or after every second: no step could be told from that."""
    seen = evidence.steps
    if seen is None or seen.evaluations < SEEN_OFTEN:
        return None
    share = seen.evaluation_share * evidence.in_steps
    if share < LARGE:
        return None
    every = seen.steps / seen.evaluations
    seconds = seen.evaluation_share * seen.mean_ms / 1000 * every
    kept, without = gradients_kept(seen)
    often = "In each step" if every < EACH else f"About once in {words.count_text(round(every), 'step')}"
    return Statement(
        sentence=(
            f"{often}, the program puts its model into evaluation mode, for "
            f"{words.duration_text(seconds)}. That is {words.share_text(share)} of the time.{kept}"
        ),
        figures=_figures(share, seconds, every, seen.evaluations),
        weight=share,
        advice=f"{without}{ADVICE_WITHIN_STEPS}",
        clause=f"spends {words.share_text(share)} of the time with the model in evaluation mode",
    )


def _figures(share: float, seconds: float, every: float, seen: int) -> dict[str, float]:
    return {
        "evaluation_share": share,
        "evaluation_seconds": seconds,
        "steps_between_evaluations": every,
        "evaluations_seen": float(seen),
    }


RULE = Rule(
    id="frequent-evaluation",
    title="Evaluation interrupts training often",
    topic="epoch",
    depth=CAUSE,
    needs=("step",),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/tutorials/beginner/introyt/trainingyt.html",
    advice=ADVICE,
)
