"""How much windows of the training as written differ from one another inside a process. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.statistics.distributions import student_t_quantile

FEWEST = 3
"""Changes from one window to the next without which nothing is known of how windows differ."""


def half_width(changes: Sequence[float], pairs: int, level: float = 0.95) -> float | None:
    """Half the width of the interval of a log ratio from so many pairs, as far as it differs within a process; None if
    too few `changes` are known.

    A change is the difference of two windows, so it varies twice as much as one. A pair compares a window with the mean
    of the two around it, which varies 1.5 times as much.
    """
    if len(changes) < FEWEST or pairs < 1:
        return None
    of_a_window = math.fsum(change * change for change in changes) / len(changes) / 2
    return student_t_quantile((1 + level) / 2, len(changes)) * math.sqrt(1.5 * of_a_window / pairs)


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
