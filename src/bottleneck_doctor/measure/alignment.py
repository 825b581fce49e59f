"""Windows of several processes that hold the same steps of a training, counted from its start. Pure.

A program with fixed seeds takes the same batches in every process. If one side of a pair is faster, it has more steps
in windows of as many seconds, and so other batches: the same ones in every pair, so that more pairs would not show it.
A batch of padded texts may cost ten times as much as another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bottleneck_doctor.measure.schedule import WindowSize, in_units

MOST_LONGER = 3
"""A window holds at most this many times the steps that its own process asks for, so that another one has enough."""
MOST_EXTRA = 3.0
"""Windows that the steps which are added may last as long as, in one round."""


@dataclass(frozen=True)
class Standing:
    """Where one process stands: at `position`, a number of steps, each of which takes `step` seconds. `size`: the
    window that it asks for. `most_steps`: timed steps that a window may have; None: as many as you like."""

    position: int
    size: WindowSize
    step: float
    most_steps: int | None = None


def aligned(sides: Sequence[Standing], period: int) -> list[WindowSize] | None:
    """Sizes of windows whose timed parts hold the same steps in all processes; None if that can't be had, or would take
    too long."""
    if len(sides) < 2 or any(side.size.epochs for side in sides):
        return None
    unit = math.lcm(*(side.size.unit for side in sides))
    fewest, most = min(side.size.steps for side in sides), max(side.size.steps for side in sides)
    steps = in_units(min(most, MOST_LONGER * fewest), unit)
    bounds = [side.most_steps for side in sides if side.most_steps is not None]
    if bounds:
        steps = min(steps, min(bounds) // unit * unit)
    begin = max(side.position + side.size.lead_in for side in sides)
    skipped = [begin - side.position - side.size.lead_in for side in sides]
    if steps < 1 or any(each % period for each in skipped):
        return None
    added = [max(0, steps - side.size.steps) + more for side, more in zip(sides, skipped, strict=True)]
    longest = max(side.size.steps * side.step for side in sides)
    if math.fsum(side.step * more for side, more in zip(sides, added, strict=True)) > MOST_EXTRA * longest:
        return None
    return [replace(side.size, steps=steps, skipped=more) for side, more in zip(sides, skipped, strict=True)]
