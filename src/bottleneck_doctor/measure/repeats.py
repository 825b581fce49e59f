"""How much windows of the training as written differ from one another inside a process. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import pairing


def baseline_changes(windows: Sequence[Window]) -> list[float]:
    """Logs of the cost of a step in a counted baseline window, relative to the one before it in the same session."""
    counted = [window for window in windows if pairing.usable(window) and window.label == BASELINE]
    per_step = pairing.samples_per_step(counted)
    changes = []
    for session in sorted({window.session for window in counted}):
        mine = sorted((window for window in counted if window.session == session), key=pairing.middle)
        costs = [pairing.step_cost(window, per_step) for window in mine]
        changes += [math.log(after / before) for before, after in pairwise(costs)]
    return changes
