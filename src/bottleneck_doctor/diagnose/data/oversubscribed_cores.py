"""`oversubscribed-cores`: more workers are computing than there are cores for them."""

from __future__ import annotations

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE, ORIGIN, Rule, Statement, Unjudged, clamp
from bottleneck_doctor.diagnose.data._loading import busy_workers, limit
from bottleneck_doctor.diagnose.data._workers import better_workers
from bottleneck_doctor.wording import words

PRESSURE = 0.2
"""If the use of the cores is not known, they are short when some task waited for one for this share of the time
(`cpu.some` of pressure stall information, https://docs.kernel.org/accounting/psi.html). The figure is ours."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading = evidence.as_written
    if loading is None or loading.num_workers == 0:
        return None
    cores = _usage.usable_cpus(evidence)
    full = _usage.cores_full(evidence)
    pressure = _usage.mean(evidence, lambda use: use.cpu_pressure)
    if full is None and pressure is None:
        return Unjudged("neither how busy the cores are nor the pressure on them could be read")
    bound = limit(evidence)
    better = better_workers(evidence)
    busy = busy_workers(evidence)
    short = full if full is not None else (pressure or 0.0) >= PRESSURE
    if not short or busy <= cores or (bound is not None and bound.kind == "io"):
        return None
    if loading.computing is not None:
        # If others took the cores, or workers wait for a lock, there are not too many workers.
        own = busy * loading.computing + (_usage.of(evidence, "main", _usage.cpu) or 0.0)
        if own < _usage.CORES_FULL * cores:
            return None
    if better is not None and better.direction == "more":
        return None
    wait = evidence.wait or 0.0
    weight = clamp(1.0 - cores / busy) * max(wait, better.gain if better is not None else 0.0)
    if weight < LARGE:
        return None
    figures = {"busy_workers": busy, "usable_cpus": float(cores), "data_wait_share": wait}
    if pressure is not None:
        figures["cpu_pressure"] = pressure
    return Statement(
        sentence=(
            f"On average, {busy:.1f} of {words.count_text(loading.num_workers, 'worker')} are busy at the same time on "
            f"{words.count_text(cores, 'usable core')}, which the training process needs too. So the workers take "
            "turns instead of working side by side."
        ),
        figures=figures,
        weight=weight * evidence.in_steps,
        measured=False,
        clause=f"has {busy:.1f} busy workers on only {words.count_text(cores, 'core')}",
    )


RULE = Rule(
    id="oversubscribed-cores",
    title="More workers than cores",
    topic="data",
    depth=ORIGIN,
    needs=("loader", "own-workers", "loading", "utilization"),
    judge=judge,
    source="https://docs.kernel.org/accounting/psi.html",
    advice="Use fewer workers than usable cores, and make each sample cheaper instead.",
    fixes=("no-workers", "workers", "intra-op-threads"),
    contradicts=("too-few-workers", "compute-bound"),
)
