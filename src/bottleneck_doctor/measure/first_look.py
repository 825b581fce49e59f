"""What the first window of phases tells of the windows to come: how batches come, and whether steps are alike."""

from __future__ import annotations

from typing import Any

from bottleneck_doctor.documents.report import Loading, Window
from bottleneck_doctor.measure import schedule, supply
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found


def heed(
    costs: Costs,
    window: Window,
    detail: dict[str, Any],
    loading: Loading | None,
    found: Found,
    epoch_batches: int | None,
) -> None:
    """Tell `costs` what a window of phases saw of the training as written. `detail`: what its mode found. `loading`:
    how batches were made in it; None if that was not seen."""
    came = supply.seen(window, loading, found, epoch_batches)
    # Its steps are a little longer, for timers and synchronisation: so they are held against one another alone.
    alike = schedule.alike(detail["step_seconds"])
    costs.heed(came, regular=alike and found.period == 1 and schedule.regular(found.step_seconds))
