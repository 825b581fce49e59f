"""`slow-collate`: putting samples together into a batch makes up much of the wait."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import loader_place, refined_in_loading
from bottleneck_doctor.diagnose._rule import (
    DATA_GUIDE,
    PART,
    Rule,
    Statement,
    at,
    made_here,
    milliseconds,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._contended import contended
from bottleneck_doctor.diagnose.data._loading import waited_making
from bottleneck_doctor.wording import words

TORCHS = "torch.utils.data._utils.collate"


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None or parts.collate < PART or contended(evidence).collate:
        return None
    site = refined_in_loading(evidence, loading.collate_site)
    torchs = loading.collate_module.startswith(TORCHS)
    if site is not None:
        name = "the collate function"
    elif torchs:
        name = "torch's own collate function"
    elif loading.collate_name:
        name = f"`{loading.collate_name}` of {loading.collate_module.partition('.')[0] or 'a library'}"
    else:
        name = "the loader's collate function"
    if site is None and not torchs:
        # A library's collate function is changed where the loader is made.
        site = loader_place(evidence)
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"Collating takes {words.share_text(parts.collate)} of making a batch: {milliseconds(loading.collate_ms)} "
            f"in {name}{at(site)}. {training_waits(evidence)}"
        ),
        figures={"share_of_making": parts.collate, "collate_ms": loading.collate_ms, "data_wait_share": wait},
        weight=wait * parts.collate * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(parts.collate)} in {name}{at(site)}",
        site=site,
        advice=""
        if not torchs
        else "Return tensors of one shape and type from the dataset, so that they can be stacked in one go.",
    )


RULE = Rule(
    id="slow-collate",
    title="Collating batches is slow",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    removable=True,
    source=DATA_GUIDE + "#working-with-collate-fn",
    advice="In the collate function, work on the whole batch at once instead of sample by sample, or move the work "
    "into the dataset.",
    fixes=("workers", "prefetch-factor", "intra-op-threads", "batched-fetch"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
