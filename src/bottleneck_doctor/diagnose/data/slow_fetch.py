"""`slow-fetch`: the wait is spent in the dataset's own code, and nothing more specific is known."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._met import met_in_loading, passed_in_loading
from bottleneck_doctor.diagnose._places import DOMINATES, fetch_site, hottest_loading, listing_at, loader_place
from bottleneck_doctor.diagnose._rule import (
    DATA_GUIDE,
    PART,
    PLACE,
    Rule,
    Statement,
    at,
    made_here,
    milliseconds,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import waited_making
from bottleneck_doctor.wording import words

WRAPPERS = ("Subset", "ConcatDataset", "ChainDataset", "StackDataset")
"""Datasets of torch that make no samples themselves."""
SEEDS = (
    "`torch.manual_seed` seeds the generator of each kind of device. Where a kind is not in use, each call writes down "
    "its stack, and keeps it. Make a `torch.Generator`, seed that, and hand it to the functions that draw."
)
"""Of `torch.cuda._lazy_call` and its like, which all versions of torch since 1.0 have."""


def judge(evidence: Evidence) -> Statement | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None or parts.own < PART:
        return None
    hot = hottest_loading(evidence)
    site = hot.site if hot is not None and hot.share >= PART else fetch_site(evidence)
    where = f"`{loading_name(evidence)}`{at(site)}"
    # Samples and lines come from different windows, which may differ if training is uneven.
    met = met_in_loading(evidence) if hot is None or not hot.listed else None
    inside = met.sentence("making batches") if met is not None else ""
    sample = loading.fetch_ms / loading.samples_per_batch if loading.samples_per_batch > 0 else loading.fetch_ms
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"The dataset's own code, {where}, takes {words.share_text(parts.own)} of making a batch. Fetching takes "
            f"{milliseconds(loading.fetch_ms)} a batch, {milliseconds(sample)} a sample.{inside} "
            f"{training_waits(evidence)}"
        ),
        figures={
            "share_of_making": parts.own,
            "fetch_ms": loading.fetch_ms,
            "ms_per_sample": sample,
            "data_wait_share": wait,
        },
        weight=wait * parts.own * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(parts.own)} in {where}",
        # A library's dataset can only be changed where it is handed to the loader.
        site=site or loader_place(evidence),
        advice=SEEDS if passed_in_loading(evidence, "manual_seed", "torch/random.py") >= DOMINATES else "",
    )


def loading_name(evidence: Evidence) -> str:
    """The method in which samples are made, as the user knows it.

    The loader's dataset may wrap the one that does the work. The name of that one is known if it is the user's own and
    was timed line by line.
    """
    loading = evidence.as_written
    listing = listing_at(evidence, loading.fetch_site) if loading is not None else None
    if listing is not None and "." in listing.name:
        return listing.name
    method = "__iter__" if evidence.found.iterable else "__getitem__"
    wraps = evidence.found.dataset_type in WRAPPERS
    return f"{evidence.found.dataset_type}.{method}" if evidence.found.dataset_type and not wraps else method


RULE = Rule(
    id="slow-fetch",
    title="Fetching samples is slow",
    topic="data",
    depth=PLACE,
    needs=("loader", "wait", "loading"),
    judge=judge,
    removable=True,
    source=DATA_GUIDE,
    advice="Do this work once, before training, instead of for every sample of every epoch.",
    fixes=("workers", "prefetch-factor", "intra-op-threads", "batched-fetch", "cached-samples", "cached-inputs"),
    yields_to=(
        "many-small-files",
        "network-file-system",
        "cold-cache",
        "oversubscribed-threads",
        "memory-data-needs-no-workers",
    ),
    contradicts=("compute-bound",),
)
