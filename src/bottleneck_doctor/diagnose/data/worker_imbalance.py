"""`worker-imbalance`: one worker takes much longer for its batches than the others."""

from __future__ import annotations

from statistics import median

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site
from bottleneck_doctor.diagnose._rule import ORIGIN, Rule, Statement, milliseconds, training_waits, waits
from bottleneck_doctor.diagnose.data._loading import waited_making

UNEVEN = 1.5
"""The slowest worker's time a batch over the median of the others. Ours: order is kept, so all wait for the slowest,
and at 1.5 a third of the others' time is lost."""
LEAST_BATCHES = 3
"""Batches that a worker must have made to be compared."""


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None:
        return None
    cost = {
        each.worker: each.fetch_seconds + each.collate_seconds
        for each in loading.workers
        if each.batches >= LEAST_BATCHES
    }
    if len(cost) < 2:
        return None
    slowest = max(cost, key=lambda worker: cost[worker])
    others = median(seconds for worker, seconds in cost.items() if worker != slowest)
    if others <= 0 or cost[slowest] < UNEVEN * others:
        return None
    ratio = cost[slowest] / others
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"Worker {slowest} takes {milliseconds(cost[slowest] * 1000)} a batch, {ratio:.1f} times as long as the "
            f"others ({milliseconds(others * 1000)}). Batches are used in order, so this worker sets the pace. "
            f"{training_waits(evidence)}"
        ),
        figures={
            "slowest_seconds": cost[slowest],
            "others_seconds": others,
            "ratio": ratio,
            "data_wait_share": wait,
        },
        weight=wait * (1.0 - others / cost[slowest]) * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}, because worker {slowest} takes {ratio:.1f} times as long as the others",
        site=fetch_site(evidence),
    )


RULE = Rule(
    id="worker-imbalance",
    title="One worker is slower than the others",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "own-workers", "wait", "loading"),
    judge=judge,
    source="https://pytorch.org/docs/stable/data.html#multi-process-data-loading",
    advice="Look for work that only this worker does: in `worker_init_fn`, on a larger shard, while it holds a lock.",
    fixes=("prefetch-factor",),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
