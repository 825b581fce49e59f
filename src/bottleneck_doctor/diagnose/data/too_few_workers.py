"""`too-few-workers`: more workers were measured to be faster."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import DATA_GUIDE, MATTERS, NUMBER, SYMPTOM, Rule, Statement, of_workers, waits
from bottleneck_doctor.diagnose.data._workers import better_workers
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    better = better_workers(evidence)
    if better is None or better.direction != "more" or (evidence.wait or 0.0) < MATTERS:
        return None
    own, point = better.own, better.point
    ratio = words.speedup_text(point.speedup)
    if own.num_workers == 0:
        says = "The training process makes its batches itself and"
        clause = f"{waits(evidence)}, because it makes its batches itself"
    else:
        they = of_workers(own.num_workers, "does", "do")
        says = f"{they} not keep up with the training, which"
        clause = f"{waits(evidence)}, because {they} not keep up"
    return Statement(
        sentence=(
            f"{says} reaches {words.amount_text(own.samples_per_second)} samples a second. "
            f"With {words.count_text(point.num_workers, 'worker')} it reaches "
            f"{words.amount_text(point.samples_per_second)}, {ratio} as fast."
        ),
        figures={
            "num_workers": float(own.num_workers),
            "better_num_workers": float(point.num_workers),
            "speedup": point.speedup.estimate,
            "data_wait_share": evidence.wait or 0.0,
        },
        weight=better.gain,
        measured=False,
        clause=clause,
        # Without workers, the finding is about what is slow; with workers, about whether they are enough.
        depth=SYMPTOM if own.num_workers == 0 else NUMBER,
    )


RULE = Rule(
    id="too-few-workers",
    title="Too few workers",
    topic="data",
    depth=NUMBER,
    needs=("loader", "wait", "curve"),
    judge=judge,
    source=DATA_GUIDE + "#multi-process-data-loading",
    advice="Set `num_workers` to the measured best. The curve shows from where on more workers do not help.",
    fixes=("workers", "intra-op-threads"),
    contradicts=("too-many-workers", "compute-bound"),
)
