"""`slow-hand-over`: passing batches from a worker to the training process takes long."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import PART, Rule, Statement, milliseconds, portion, training_waits, waits
from bottleneck_doctor.diagnose.data._loading import waited_making
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or loading.hand_over_ms is None or parts is None or parts.hand_over < PART:
        return None
    wait = evidence.wait or 0.0
    size = words.bytes_text(loading.bytes_per_batch)
    return Statement(
        sentence=(
            f"A finished batch of {size} takes {milliseconds(loading.hand_over_ms)} to get from its worker to the "
            f"training process, {words.share_text(parts.hand_over)} of what a batch costs. {training_waits(evidence)}"
        ),
        figures={
            "share_of_making": parts.hand_over,
            "hand_over_ms": loading.hand_over_ms,
            "bytes_per_batch": loading.bytes_per_batch,
            "data_wait_share": wait,
        },
        weight=wait * parts.hand_over * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}, {portion(parts.hand_over)} in handing batches of {size} over from the workers",
    )


RULE = Rule(
    id="slow-hand-over",
    title="Batches take long to arrive from their workers",
    topic="data",
    needs=("loader", "own-workers", "wait", "loading"),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/multiprocessing.html",
    advice="Hand over less: small types such as uint8 that the device converts, tensors instead of lists of objects, "
    "and only what the step needs.",
    fixes=("no-workers", "pinned-memory", "sharing-strategy"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
