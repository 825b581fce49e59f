"""Whether the program with the change made does what was promised: two speedups in, a word out. Pure."""

from __future__ import annotations

import math

from bottleneck_doctor.documents.report import Confirmed, Speedup


def outcome(promised: Speedup, measured: Speedup) -> Confirmed:
    """What `measured`, the speedup of the changed program, says of what was `promised`."""
    differs = apart(promised, measured)
    if measured.low > 1:
        return "differs" if differs else "agrees"
    return "not_faster" if differs or measured.high < 1 else "unclear"


def is_surer(measured: Speedup, promised: Speedup) -> bool:
    """Whether the changed program's speedup is known at least as well as what was promised."""
    return _width(measured) <= _width(promised)


def _width(figure: Speedup) -> float:
    return math.log(figure.high / figure.low) if 0 < figure.low <= figure.high < math.inf else math.inf


def apart(one: Speedup, other: Speedup) -> bool:
    """Whether two speedups differ by more than chance explains: two measurements of the same do so in one of twenty.

    Both come from processes of their own, so the squares of their errors add up. On the side that faces the other one,
    a half of each 95 % interval, as a log, stands for 1.96 standard errors.
    """
    low, high = sorted((one, other), key=lambda each: each.estimate)
    if not 0 < low.estimate <= high.estimate < math.inf:
        return True
    up = math.log(low.high / low.estimate)
    down = math.log(high.estimate / high.low) if high.low > 0 else math.inf
    return math.log(high.estimate / low.estimate) > math.hypot(up, down)
