"""What a guest says of a window in, the `Window` that the result holds out. Pure."""

from __future__ import annotations

from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import RankPart, Window
from bottleneck_doctor.measure import phases
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.ranks import Together

BURN_IN = "burn-in"
"""The key of windows that warm a process up."""
AS_WRITTEN = (BASELINE, BURN_IN)
"""Keys of windows in which nothing was changed."""


def kept(session: int, block: int, each: Probe, done: messages.WindowDone) -> Window:
    """The window of `each` as the result holds it. Of several ranks, it is that of the slowest."""
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
    )


def _parts(done: messages.WindowDone) -> list[RankPart]:
    """Each rank's own figures; none where one process trains."""
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
