"""`workers-cpu-bound`: workers compute all of the time, and training still waits for them."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import (
    MATTERS,
    SYMPTOM,
    Rule,
    Statement,
    Unjudged,
    clamp,
    of_workers,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import limit, waited_making
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading, parts = evidence.as_written, waited_making(evidence)
    if loading is None or parts is None:
        return None
    if _usage.of(evidence, "workers", _usage.cpu) is None:
        return Unjudged("the processor time of the workers was not sampled")
    bound = limit(evidence)
    if bound is None or bound.kind != "cpu" or bound.compute is None:
        return None
    wait = evidence.wait or 0.0
    cores = _usage.mean(evidence, lambda use: use.cores_busy)
    machine = f" In all, {cores:.1f} of {_usage.usable_by_all(evidence)} cores are busy." if cores is not None else ""
    each = " each" if loading.num_workers > 1 else ""
    figures = {"compute_while_busy": bound.compute, "data_wait_share": wait}
    delayed = ""
    if loading.delayed is not None and loading.delayed >= MATTERS:
        figures["delayed_share"] = loading.delayed
        delayed = f", and {'wait' if each else 'waits'} for a core {words.share_text(loading.delayed)} of that time"
    if cores is not None:
        figures["cores_busy"] = cores
    return Statement(
        sentence=(
            f"{of_workers(loading.num_workers, 'keeps', 'keep')} {bound.compute:.2f} cores busy{each} while making "
            f"batches{delayed}.{machine} The processor limits loading. {training_waits(evidence)}"
        ),
        figures=figures,
        weight=wait * clamp(parts.fetch + parts.collate) * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}, because the processor limits its workers",
    )


RULE = Rule(
    id="workers-cpu-bound",
    title="Workers are limited by the processor",
    topic="data",
    depth=SYMPTOM,
    needs=("loader", "own-workers", "wait", "loading", "utilization"),
    judge=judge,
    source="https://www.brendangregg.com/usemethod.html",
    advice="Do less work for each sample, or use more cores: more workers than cores will not help.",
    fixes=("workers", "intra-op-threads", "cached-samples", "cached-inputs", "batched-transforms", "reduced-decoding"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound", "network-file-system", "cold-cache"),
)
