"""`many-small-files`: each sample is in a small file of its own, and loading spends its time on opening them."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, line_with
from bottleneck_doctor.diagnose._rule import (
    ORIGIN,
    Rule,
    Statement,
    Unjudged,
    at,
    made_here,
    portion,
    several,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._files import reading
from bottleneck_doctor.diagnose.data._loading import READING_LINES
from bottleneck_doctor.wording import words

SMALL = 64 << 10
"""A file of up to this many bytes is small. Parallel file systems call files below 64 KiB so (Lustre's Data-on-MDT is
made for them), and on a local disk finding and opening such a file takes longer than reading it."""
FILES_A_SAMPLE = 0.5
"""With this many files a sample, each sample is taken to have a file of its own."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading = evidence.as_written
    files = loading.files if loading is not None else None
    share = reading(evidence)
    if loading is None or files is None or files.mean_bytes > SMALL:
        return None
    each = files.per_batch / loading.samples_per_batch if loading.samples_per_batch > 0 else files.per_batch
    if each < FILES_A_SAMPLE:
        return None
    if share is None or isinstance(share, Unjudged):
        return share
    site = line_with(evidence, READING_LINES) or fetch_site(evidence)
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"On average, a batch opens {several(files.per_batch, 'file')} of {words.bytes_text(files.mean_bytes)}"
            f"{at(site)}. Reading them is {words.share_text(share)} of making a batch. {training_waits(evidence)}"
        ),
        figures={
            "files_per_batch": files.per_batch,
            "files_per_sample": each,
            "mean_bytes": files.mean_bytes,
            "share_of_making": share,
            "data_wait_share": wait,
        },
        weight=wait * share * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(share)} in opening "
        f"{several(files.per_batch, 'small file')} a batch{at(site)}",
        site=site,
    )


RULE = Rule(
    id="many-small-files",
    title="Many small files",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "wait", "loading", "files"),
    judge=judge,
    source="https://doc.lustre.org/lustre_manual.xhtml#lustre_dataonmdt",
    advice="Pack the samples into a few large files (tar shards, HDF5, LMDB, an array on disk) and read them in "
    "sequence.",
    fixes=("workers", "prefetch-factor", "cached-samples", "cached-inputs"),
    contradicts=("compute-bound", "memory-data-needs-no-workers"),
)
