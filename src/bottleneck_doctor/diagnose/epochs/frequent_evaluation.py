"""`frequent-evaluation`: the program evaluates in the midst of its epochs, and that takes a good part of the time."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, Rule, Statement
from bottleneck_doctor.diagnose.epochs._gradients import KEPT, WITHOUT_GRADIENTS, keeps_graphs
from bottleneck_doctor.wording import words

ADVICE = (
    "Evaluate after more steps, or on fewer batches. In transformers, raise `eval_steps`; in Lightning, "
    "`val_check_interval`, or lower `limit_val_batches`."
)


def judge(evidence: Evidence) -> Statement | None:
    seen, step = evidence.interruption, evidence.step_ms
    if seen is None or not step:
        return None
    share = evidence.evaluating_seconds / evidence.seconds_of_a_step
    if share < LARGE:
        return None
    steps = words.count_text(round(seen.every), "step")
    kept = keeps_graphs(seen)
    return Statement(
        sentence=(
            f"Within an epoch, the program evaluates about once in {steps}, for {words.duration_text(seen.seconds)}. "
            f"These steps take {words.duration_text(seen.every * step / 1000)}, so evaluations are "
            f"{words.share_text(share)} of the time.{KEPT if kept else ''}"
        ),
        figures={
            "evaluation_share": share,
            "evaluation_seconds": seen.seconds,
            "steps_between_evaluations": seen.every,
            "evaluations_seen": float(seen.seen),
        },
        weight=share,
        advice=f"{WITHOUT_GRADIENTS} {ADVICE}" if kept else ADVICE,
        clause=f"spends {words.share_text(share)} of the time in evaluations within its epochs",
    )


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
