"""`cold-cache`: what loading reads comes from the disk, not from the page cache."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, line_with
from bottleneck_doctor.diagnose._rule import ORIGIN, Rule, Statement, Unjudged, clamp, portion, waits
from bottleneck_doctor.diagnose.data._files import reading
from bottleneck_doctor.diagnose.data._loading import READING_LINES
from bottleneck_doctor.wording import words

FROM_DISK = 0.5
"""The cache is called cold if the disk delivers this part of what loading opens. Ours: half."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading = evidence.as_written
    files, step = (loading.files if loading is not None else None), evidence.step_ms
    share = reading(evidence)
    if isinstance(share, Unjudged):
        return share
    if loading is None or files is None or step is None or share is None or files.remote:
        return None
    from_disk = _usage.of(evidence, "workers" if loading.num_workers > 0 else "main", lambda use: use.read_bytes)
    if from_disk is None:
        return Unjudged("what the disk delivered was not sampled")
    opened = files.per_batch * files.mean_bytes
    asked = opened * 1000 / step
    if asked <= 0 or from_disk < FROM_DISK * asked:
        return None
    part = clamp(from_disk / asked)
    wait = evidence.wait or 0.0
    figures = {
        "read_bytes_per_second": from_disk,
        "from_disk_share": part,
        "share_of_making": share,
        "data_wait_share": wait,
    }
    memory = evidence.environment.memory_bytes if evidence.environment is not None else 0
    batches = evidence.baseline.epoch_batches if evidence.baseline is not None else None
    fits = ""
    if memory and batches:
        epoch = opened * batches
        figures["epoch_bytes"] = epoch
        kept = (
            "which fit into memory, so later epochs may find them there"
            if epoch < memory / 2
            else f"which may be more than the {words.bytes_text(memory)} of memory can keep"
        )
        fits = f" The files of one epoch hold {words.bytes_text(epoch)}, {kept}."
    return Statement(
        sentence=(
            f"Of the bytes in the opened files, {words.share_text(part)} come from the disk "
            f"({words.bytes_text(from_disk)} a second) and not from memory. Reading files is "
            f"{words.share_text(share)} of making a batch.{fits}"
        ),
        figures=figures,
        weight=wait * share * part * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}, {portion(share * part)} in reading files from the disk",
        site=line_with(evidence, READING_LINES) or fetch_site(evidence),
    )


RULE = Rule(
    id="cold-cache",
    title="Files are read from the disk, not from memory",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "wait", "step", "loading", "files", "utilization"),
    judge=judge,
    source="https://man7.org/linux/man-pages/man5/proc_pid_io.5.html",
    advice="Make the data smaller, so that it stays in memory, or read it in the order in which the disk stores it.",
    fixes=("workers", "prefetch-factor"),
    contradicts=("compute-bound", "workers-cpu-bound", "memory-data-needs-no-workers"),
)
