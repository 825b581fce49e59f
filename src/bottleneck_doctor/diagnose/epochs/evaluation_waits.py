"""`evaluation-waits`: between epochs, the program evaluates, and waits for the data of that."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE, ORIGIN, Rule, Statement, at
from bottleneck_doctor.wording import words

MOST = 0.5
"""Waiting is this part of an evaluation, or more: then it is the first thing to change about it. Ours."""
KEEP = (
    "If the samples of the evaluation are the same each time, as they mostly are without random transforms, prepare "
    "them once and keep them in a list, as far as memory allows."
)
LOADED_IN_MAIN = f"Load the evaluation's batches in workers (`num_workers=2`), too. {KEEP}"
LOADED_IN_WORKERS = f"{KEEP} Or keep the workers of its loader alive (`persistent_workers=True`), and give it more."


def judge(evidence: Evidence) -> Statement | None:
    whole, pause = evidence.whole_epoch_seconds, evidence.pause
    if not whole or pause is None or pause.waited_for is None or not pause.evaluation:
        return None
    share, part = pause.waiting / whole, min(1.0, pause.waiting / pause.evaluation)
    if share < LARGE or part < MOST:
        return None
    workers, place = pause.waited_for.workers, at(pause.waited_for.site)
    has = f"has {workers} {words.plural('worker', workers)}" if workers else "has no workers"
    return Statement(
        sentence=(
            f"After an epoch, an evaluation takes {words.duration_text(pause.evaluation)}, which is "
            f"{words.share_text(pause.evaluation / whole)} of the time, and waits for its data during "
            f"{words.share_text(part)} of that. The loader that it waits for{place} {has}."
        ),
        figures={
            "evaluation_waiting_share": share,
            "waiting_of_evaluation": part,
            "evaluation_seconds": pause.evaluation,
            "evaluation_workers": float(workers),
        },
        weight=share,
        clause=f"spends {words.share_text(share)} of the time waiting for the data of evaluations",
        site=pause.waited_for.site,
        advice=LOADED_IN_WORKERS if workers else LOADED_IN_MAIN,
    )


RULE = Rule(
    id="evaluation-waits",
    title="Evaluation waits for data",
    topic="epoch",
    depth=ORIGIN,
    needs=("epoch", "epoch-pause"),
    judge=judge,
    removable=True,
    source="https://pytorch.org/docs/stable/data.html#multi-process-data-loading",
    advice="Make the loader of the evaluation as quick as that of the training.",
)
