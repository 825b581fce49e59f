"""What a guest reports of a window in; the `Window`, as the result holds it, out. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import RankPart, Surroundings, Window, WindowLoss, WindowMemory
from bottleneck_doctor.measure import phases
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.ranks import Together
from bottleneck_doctor.statistics import neighbours
from bottleneck_doctor.statistics.scatter import scatter

BURN_IN = "burn-in"
"""The key of windows that warm a process up."""
AS_WRITTEN = (BASELINE, BURN_IN)
"""Keys of windows in which nothing was changed."""
DIGITS = 4
"""Decimals that are kept for shares and cores: the counters are no finer."""


def kept(session: int, block: int, each: Probe, done: messages.WindowDone, runnable: float | None = None) -> Window:
    """The window of `each` as the result holds it; with several ranks, that of the slowest. `runnable`: threads of the
    whole machine that ran or were ready to run during its timed part, on average; None if that is not known."""
    return Window(
        session=session,
        rank=done.slowest if isinstance(done, Together) else 0,
        block=block,
        setting=each.as_setting(),
        mode=each.mode,
        steps=done.steps,
        samples=done.samples,
        seconds=done.seconds,
        lead_in_steps=done.lead_in_steps,
        lead_in_seconds=done.lead_in_seconds,
        wait_seconds=done.wait_seconds,
        turn_seconds=done.epoch_overhead_seconds,
        whole_epochs=done.whole_epochs,
        queue_change=done.queue_change,
        ready_share=done.ready_batches / done.steps if done.steps else None,
        effect=done.effect,
        started=done.started,
        ended=done.ended or None,
        status=_status(each, done),
        reason=done.reason,
        label=each.key,
        parts=_parts(done),
        around=surroundings(done.around, runnable),
        loss=_loss(done.losses),
        memory=_memory(done),
        elements=done.elements or None,
        turns=done.turns,
        turns_collecting=done.turns_collecting,
    )


def _loss(told: Sequence[Sequence[float]]) -> WindowLoss | None:
    """`told`: step and loss."""
    finite = [loss for _, loss in told if math.isfinite(loss)]
    if not told:
        return None
    return WindowLoss(
        steps=len(told),
        not_finite=len(told) - len(finite),
        mean=fmean(finite) if finite else None,
        scatter=scatter(finite) if finite else None,
    )


def _memory(done: messages.WindowDone) -> WindowMemory | None:
    if done.peak_bytes is None and done.device_bytes is None:
        return None
    return WindowMemory(peak=done.peak_bytes, workers=done.workers_bytes, device_peak=done.device_bytes)


def surroundings(told: Mapping[str, float], runnable: float | None = None) -> Surroundings | None:
    """The kernel's counters over the timed part, as shares and cores; None if the guest reported none."""
    seconds, capacity = told.get("seconds", 0.0), told.get("capacity", 0.0)
    if seconds <= 0:
        return None

    def over(name: str, whole: float) -> float | None:
        return round(max(0.0, told[name]) / whole, DIGITS) if name in told and whole > 0 else None

    busy, own, queued = told.get("busy"), told.get("own"), told.get("queued")
    # Ticks are coarse: over a short time, they make it a little more or less than it is.
    cpus = float(max(1, round(capacity / seconds))) if capacity > 0 else None
    wanted = None
    if runnable is not None and busy is not None and own is not None and queued is not None and cpus is not None:
        ours = (own + queued) / seconds
        wanted = round(neighbours.wanted(runnable - ours, (busy - own) / seconds, ours, cpus), DIGITS)
    return Surroundings(
        cpus=cpus,
        own_cpu=over("own", seconds),
        # Busy time is counted in ticks, but our own time in nanoseconds, so the difference may come out below 0.
        others_cpu=None if busy is None or own is None else round(max(0.0, busy - own) / seconds, DIGITS),
        steal_share=over("stolen", capacity),
        throttled_share=over("throttled", told.get("periods", 0.0)),
        cpu_pressure=over("cpu_pressure", seconds),
        io_pressure=over("io_pressure", seconds),
        own_queued=over("queued", seconds),
        others_wanted=wanted,
        faults=over("faults", seconds),
        kernel_cpu=over("kernel", seconds),
    )


def _parts(done: messages.WindowDone) -> list[RankPart]:
    """Each rank's own figures; empty if one process trains alone."""
    parts = (done.parts or {}) if isinstance(done, Together) else {}
    return [
        RankPart(
            rank=rank,
            steps=part.steps,
            samples=part.samples,
            seconds=part.seconds,
            wait_seconds=part.wait_seconds,
            status=_part_status(part),
            reason=part.reason,
            phases=phases.phases([part.detail]),
        )
        for rank, part in sorted(parts.items())
    ]


def _part_status(part: messages.WindowDone) -> Any:
    return part.status if part.status in ("ok", "no_effect") else "failed"


def _status(each: Probe, done: messages.WindowDone) -> Any:
    if each.key == BURN_IN and done.status == "ok":
        return "discarded"
    return _part_status(done)
