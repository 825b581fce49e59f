"""`slow-chain`: the transforms of a sample together make up much of the wait, and none of them does by itself."""

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

NAMED = 3
"""So many transforms are named, those that take longest."""


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    costliest = costliest_transform(evidence)
    if loading is None or parts is None or costliest is None or parts.transforms < PART:
        return None
    if clamp(costliest.share_of_fetch) * parts.fetch >= PART:
        return None  # That one is named by itself.
    by_cost = sorted(loading.transforms, key=lambda each: -each.share_of_fetch)
    shares = [(each.name, words.share_text(clamp(each.share_of_fetch) * parts.fetch)) for each in by_cost[:NAMED]]
    told = words.listed([f"`{name}` {share}" for name, share in shares])
    count = words.count_text(len(by_cost), "transform")
    site, where = transform_place(evidence, loading, costliest)
    wait = evidence.wait or 0.0
    together = milliseconds(sum(each.ms_per_sample for each in loading.transforms))
    return Statement(
        sentence=(
            f"The {count} of a sample{where} take {together} together, "
            f"{words.share_text(parts.transforms)} of making a batch. Most of it: {told}. "
            f"{training_waits(evidence)}"
        ),
        figures={"share_of_making": parts.transforms, "transforms": float(len(by_cost)), "data_wait_share": wait},
        weight=wait * parts.transforms * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(parts.transforms)} in {count}{where}",
        site=site,
    )


RULE = Rule(
    id="slow-chain",
    title="The transforms together are slow",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
    advice="Do on whole batches what does the same to every sample, such as `ToTensor` and `Normalize`. What is not "
    "random can be done once, before training.",
    fixes=("batched-transforms", "workers", "intra-op-threads", "cached-samples", "prefetch-factor"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
