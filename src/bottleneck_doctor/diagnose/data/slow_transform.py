"""`slow-transform`: one transform makes up much of the wait."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, loader_place, own_path, refined_in_loading
from bottleneck_doctor.diagnose._rule import (
    PART,
    Rule,
    Statement,
    at,
    clamp,
    made_here,
    milliseconds,
    place,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import costliest_transform, waited_making
from bottleneck_doctor.documents.report import Loading, Site, TransformCost
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    transform = costliest_transform(evidence)
    if loading is None or parts is None or transform is None:
        return None
    share = clamp(transform.share_of_fetch) * parts.fetch
    if share < PART:
        return None
    site, told = _place(evidence, loading, transform)
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


def _place(evidence: Evidence, loading: Loading, transform: TransformCost) -> tuple[Site | None, str]:
    """The line that the user would change, and the words that name it.

    That is where the user's own transform spends its time, or where a library's transform is made. If that isn't known,
    it is the user's line that calls the transform, or the line that makes the loader.
    """
    if transform.line > 0 and own_path(transform.file):
        site = refined_in_loading(evidence, Site(file=transform.file, line=transform.line))
        return site, at(site)
    if transform.made_line > 0:
        site = Site(file=transform.made_file, line=transform.made_line)
        return site, at(site)
    if loading.fetch_site is not None:
        site = fetch_site(evidence)
        return site, f" (called from {place(site)})"
    loader = loader_place(evidence)
    return loader, f" (used by the loader made at {place(loader)})" if loader is not None else ""


RULE = Rule(
    id="slow-transform",
    title="One transform is slow",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    source="https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
    advice="Make this transform cheaper: on smaller inputs, in a faster library, once before training, or on whole "
    "batches on the device.",
    fixes=("workers", "prefetch-factor", "intra-op-threads", "cached-samples"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound",),
)
