"""`memory-data-needs-no-workers`: making a batch is so cheap that workers cost more than they save."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import DATA_GUIDE, MATTERS, Rule, Statement, clamp, milliseconds, waits
from bottleneck_doctor.diagnose.data._workers import WORTHWHILE, better_workers, clearly_faster, without_workers
from bottleneck_doctor.wording import words

SMALL_BATCH = 4 << 20
"""A batch of up to this many bytes takes less than a millisecond to copy, because memory moves 5 GB/s and more. So its
cost is the queue and not the copy. `slow-hand-over` judges larger batches."""
CHEAP_MS = 2.0
"""A batch that takes no more milliseconds than this to make is cheap: a worker's queue costs about as much."""
ONE_FILE_IN = 0.1
"""With more files a sample than this, the data is taken to be in files and not in memory."""


def judge(evidence: Evidence) -> Statement | None:
    loading = evidence.as_written
    if loading is None or loading.bytes_per_batch > SMALL_BATCH:
        return None
    if loading.files is not None and loading.files.per_batch > ONE_FILE_IN * loading.samples_per_batch:
        return None
    better = better_workers(evidence)
    if better is not None and better.direction == "more":
        return None
    own_cost, hand_over = loading.fetch_ms + loading.collate_ms, loading.hand_over_ms or 0.0
    if own_cost > max(CHEAP_MS, hand_over):
        return None
    none = without_workers(evidence)
    measured = none is not None and clearly_faster(evidence, none.speedup)
    # A measurement counts more than this inference, even if it is from too few processes for a claim.
    if none is not None and (none.speedup.high < WORTHWHILE or none.speedup.estimate < 1.0):
        return None
    wait = evidence.wait or 0.0
    if not measured and (own_cost >= hand_over or wait < MATTERS):
        return None
    saved = 1 - 1 / none.speedup.estimate if none is not None and measured else clamp(1 - own_cost / hand_over) * wait
    figures = {"make_ms": own_cost, "hand_over_ms": hand_over, "data_wait_share": wait}
    workers = words.count_text(loading.num_workers, "worker")
    clause = f"{waits(evidence)}, because {workers} hand over batches that are cheap to make"
    faster = ""
    if none is None:
        faster = " Training without workers was not measured."
    elif measured:
        figures["speedup_without_workers"] = none.speedup.estimate
        faster = f" Without workers, training is {words.speedup_text(none.speedup)} as fast."
        # With the queue always full, workers cost cores and no waiting.
        clause = f"loses {words.share_text(saved)} of its time by using {workers} for batches that are cheap to make"
    return Statement(
        sentence=(
            f"A batch takes {milliseconds(own_cost)} to make and {milliseconds(hand_over)} to get from "
            f"{workers} to the training process.{faster}"
        ),
        figures=figures,
        weight=max(saved, 0.0) * evidence.in_steps,
        measured=False,
        clause=clause,
    )


RULE = Rule(
    id="memory-data-needs-no-workers",
    title="Cheap batches need no workers",
    topic="data",
    needs=("loader", "own-workers", "wait", "loading"),
    judge=judge,
    source=DATA_GUIDE + "#single-process-data-loading-default",
    advice="Load in the training process (`num_workers=0`), or take whole batches out of the tensors by index "
    "instead of single samples.",
    fixes=("no-workers", "batched-fetch"),
    contradicts=("compute-bound", "too-few-workers", "many-small-files", "network-file-system", "cold-cache"),
)
