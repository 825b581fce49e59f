"""`too-many-workers`: fewer workers were measured to be faster."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, DATA_GUIDE, Rule, Statement, of_workers
from bottleneck_doctor.diagnose.data._workers import better_workers
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    better = better_workers(evidence)
    if better is None or better.direction != "fewer":
        return None
    own, point = better.own, better.point
    fewer = f"with {point.num_workers}" if point.num_workers else "without workers"
    return Statement(
        sentence=(
            f"{of_workers(own.num_workers, 'is one', 'are')} too many: {fewer}, training is "
            f"{words.speedup_text(point.speedup)} as fast. "
            f"The training can use {words.count_text(evidence.found.usable_cpus, 'core')}."
        ),
        figures={
            "num_workers": float(own.num_workers),
            "better_num_workers": float(point.num_workers),
            "speedup": point.speedup.estimate,
        },
        weight=better.gain,
        measured=False,
        clause=f"loses {words.share_text(better.gain)} of its time by using "
        f"{words.count_text(own.num_workers, 'worker')} instead of {point.num_workers or 'none'}",
    )


RULE = Rule(
    id="too-many-workers",
    title="Too many workers",
    topic="data",
    depth=CAUSE,
    needs=("loader", "curve"),
    judge=judge,
    source=DATA_GUIDE + "#multi-process-data-loading",
    advice="Set `num_workers` to the measured best: workers that are not needed take cores, memory and time to start.",
    fixes=("workers", "no-workers"),
    # These say why workers cost more than they bring.
    yields_to=("memory-data-needs-no-workers", "slow-hand-over"),
    contradicts=("compute-bound",),
)
