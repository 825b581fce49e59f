"""How long the whole run will take: what the program says of its length, at the speed that was measured."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import WholeRun


def whole_run(evidence: Evidence) -> WholeRun | None:
    """None where the program does not say how long it will train, or where its speed is not known."""
    found, baseline, start = evidence.found, evidence.baseline, evidence.first_step_seconds
    if baseline is None or start is None or baseline.step_ms <= 0:
        return None
    batches = baseline.epoch_batches
    steps = found.run_steps
    if steps is None and found.run_epochs is not None and batches:
        steps = found.run_epochs * batches
    if not steps:
        return None
    ends = found.run_epochs if found.run_epochs is not None else steps // batches if batches else 0
    timed_whole = any(window.whole_epochs for window in evidence.windows)
    turns = 0.0 if timed_whole else ends * max(0.0, baseline.epoch_turn_seconds or 0.0)
    pause = evidence.pause
    between = None
    # What the collector takes between epochs is a part of what is promised to get faster.
    collecting = 0.0
    if ends and pause is not None and pause.seen > 0:
        collecting = baseline.collecting_seconds or 0.0
        between = ends * max(0.0, pause.evaluation + pause.saving + pause.rest - collecting)
    return WholeRun(
        epochs=found.run_epochs,
        steps=steps,
        start=start,
        training=steps * baseline.step_ms / 1000 + turns + ends * collecting,
        between=between,
        may_end_sooner=found.run_may_end_sooner,
        evaluations=steps * evidence.evaluating_seconds,
    )
