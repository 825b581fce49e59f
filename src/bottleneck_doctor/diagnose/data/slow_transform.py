"""`slow-transform`: one transform makes up much of the wait."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import (
    PART,
    Rule,
    Statement,
    clamp,
    made_here,
    milliseconds,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import costliest_transform, waited_making
from bottleneck_doctor.diagnose.data._transforms import transform_place
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    transform = costliest_transform(evidence)
    if loading is None or parts is None or transform is None:
        return None
    share = clamp(transform.share_of_fetch) * parts.fetch
    if share < PART:
        return None
    site, told = transform_place(evidence, loading, transform)
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"`{transform.name}`{told} takes {milliseconds(transform.ms_per_sample)} a sample, "
            f"{words.share_text(share)} of making a batch. {training_waits(evidence)}"
        ),
        figures={"share_of_making": share, "ms_per_sample": transform.ms_per_sample, "data_wait_share": wait},
        weight=wait * share * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(share)} in `{transform.name}`{told}",
        site=site,
    )


RULE = Rule(
    id="slow-transform",
    title="One transform is slow",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
    advice="Make this transform cheaper: on smaller inputs, in a faster library, once before training, or on whole "
    "batches on the device.",
    fixes=("workers", "prefetch-factor", "intra-op-threads", "cached-samples", "batched-transforms"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
