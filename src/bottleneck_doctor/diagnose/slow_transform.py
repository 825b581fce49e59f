"""`slow-transform`: one transform of the chain makes up much of the wait."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._loading import costliest_transform, fetch_site, waited_making
from bottleneck_doctor.diagnose._places import own_path, refined_in_loading
from bottleneck_doctor.diagnose._rule import (
    PART,
    Rule,
    Statement,
    at,
    clamp,
    made_here,
    milliseconds,
    portion,
    waits,
)
from bottleneck_doctor.render import words
from bottleneck_doctor.result import Site


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    transform = costliest_transform(loading) if loading is not None else None
    if parts is None or transform is None:
        return None
    share = clamp(transform.share_of_fetch) * parts.fetch
    if share < PART:
        return None
    own = transform.line > 0 and own_path(transform.file)
    # A library's transform is none of the user's lines: the place where it is called from is theirs.
    site = refined_in_loading(evidence, Site(file=transform.file, line=transform.line)) if own else fetch_site(evidence)
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"`{transform.name}`{at(site)} takes {milliseconds(transform.ms_per_sample)} a sample, "
            f"{words.share_text(share)} of making a batch, and training waits for data {words.share_text(wait)} "
            "of the time."
        ),
        figures={"share_of_making": share, "ms_per_sample": transform.ms_per_sample, "data_wait_share": wait},
        weight=wait * share * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(share)} in `{transform.name}`{at(site)}",
        site=site,
    )


RULE = Rule(
    id="slow-transform",
    title="One transform is slow",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    source="https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
    advice="Make this transform cheaper: on smaller inputs, in a faster library, once before training, or on whole "
    "batches on the device.",
    fixes=("workers", "prefetch-factor", "intra-op-threads"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
