"""`out-of-order-batches`: finished batches wait for an earlier one that takes longer."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site
from bottleneck_doctor.diagnose._rule import (
    CAUSE,
    DATA_GUIDE,
    SYMPTOM,
    Rule,
    Statement,
    milliseconds,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import waited_making
from bottleneck_doctor.wording import words

OFTEN = 0.1
"""The finding needs this share of batches to be finished before an earlier one. Ours: a tenth."""
UNEVEN = 2.0
"""If the 95th percentile of the time to fetch a batch is this many times the mean, uneven batches are the cause, and
not loading as such. Ours."""
EVEN = 1.5
"""Below this, batches are alike and only the jitter of workers that take turns changes their order: two even workers
finish a third of their batches out of order, which costs nothing. Ours; evenly made batches stay well below it."""

HELD_UP = 0.25
"""If workers are ready and have no core for this part of the time in which they make batches, that alone makes some
batches take much longer than others. Then uneven batches are no cause. Ours."""


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None or loading.num_workers < 2 or loading.out_of_order_share < OFTEN:
        return None
    uneven = loading.fetch_p95_ms / loading.fetch_ms if loading.fetch_ms > 0 else 1.0
    if uneven < EVEN:
        return None
    wait = evidence.wait or 0.0
    lost = max(loading.out_of_order_share, 1.0 - 1.0 / uneven)
    return Statement(
        sentence=(
            f"{words.share_text(loading.out_of_order_share)} of the batches were finished before an earlier one and "
            f"had to wait for it. Fetching takes {milliseconds(loading.fetch_ms)} on average, and "
            f"{milliseconds(loading.fetch_p95_ms)} or more for one batch in twenty. {training_waits(evidence)}"
        ),
        figures={
            "out_of_order_share": loading.out_of_order_share,
            "fetch_ms": loading.fetch_ms,
            "fetch_p95_ms": loading.fetch_p95_ms,
            "data_wait_share": wait,
        },
        weight=wait * lost * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}, because one batch in twenty takes at least {uneven:.1f} times the average to fetch",
        site=fetch_site(evidence),
        depth=CAUSE if uneven >= UNEVEN and (loading.delayed or 0.0) < HELD_UP else SYMPTOM,
    )


RULE = Rule(
    id="out-of-order-batches",
    title="Batches wait for an earlier one",
    topic="data",
    depth=SYMPTOM,
    needs=("loader", "own-workers", "wait", "loading"),
    judge=judge,
    source=DATA_GUIDE + "#torch.utils.data.DataLoader",
    advice="Let all batches take equally long (put samples of similar size together), raise `prefetch_factor`, or pass "
    "`in_order=False` (torch 2.6) if the order of batches does not matter.",
    fixes=("out-of-order", "prefetch-factor", "workers"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
