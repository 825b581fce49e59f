"""`network-file-system`: the files of every batch come over a network."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, line_with
from bottleneck_doctor.diagnose._rule import (
    ORIGIN,
    Rule,
    Statement,
    Unjudged,
    made_here,
    portion,
    several,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._files import reading
from bottleneck_doctor.diagnose.data._loading import READING_LINES
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading = evidence.as_written
    files = loading.files if loading is not None else None
    if files is None or not files.remote or files.per_batch <= 0:
        return None
    share = reading(evidence)
    if share is None or isinstance(share, Unjudged):
        return share
    wait = evidence.wait or 0.0
    return Statement(
        sentence=(
            f"On average, a batch opens {several(files.per_batch, 'file')} "
            f"({words.bytes_text(files.per_batch * files.mean_bytes)}) on a network file system ({files.file_system}). "
            f"Reading them is {words.share_text(share)} of making a batch. {training_waits(evidence)}"
        ),
        figures={
            "files_per_batch": files.per_batch,
            "bytes_per_batch": files.per_batch * files.mean_bytes,
            "share_of_making": share,
            "data_wait_share": wait,
        },
        weight=wait * share * evidence.in_steps,
        measured=made_here(evidence),
        clause=f"{waits(evidence)}, {portion(share)} in reading files over the network ({files.file_system})",
        site=line_with(evidence, READING_LINES) or fetch_site(evidence),
    )


RULE = Rule(
    id="network-file-system",
    title="Files come over the network",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "wait", "loading", "files"),
    judge=judge,
    source="https://man7.org/linux/man-pages/man2/statfs.2.html",
    advice="Copy the data to a local disk (or to memory, /dev/shm) when the job starts, as one archive rather than "
    "file by file.",
    fixes=("workers", "prefetch-factor", "cached-samples", "cached-inputs"),
    contradicts=("compute-bound", "workers-cpu-bound", "memory-data-needs-no-workers"),
)
