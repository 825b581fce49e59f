"""How long an examination wants, once its first process has shown what leads and what windows and starts take.

Pure: costs in seconds and rough speeds come in, seconds go out. A claim needs three processes at least (`speedups`);
where they have to be started for long, or steps are long, three of them do not fit the time that suffices elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bottleneck_doctor.documents.labels import CONTROL
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.pairing import Pair
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.statistics.speedups import SpeedupEstimate

LONGEST = 600.0
"""Seconds that all of it takes at most where the user set no budget, but for a first start that takes most of them."""
PROCESS_LUCK = 0.03
"""By how much processes are taken to differ before a second one was seen, as a standard deviation of logs: most differ
by 1 to 3 %."""
MARGIN = 1.2
"""Starts and windows take longer now and then than they did, and some processes have to warm up."""


@dataclass(frozen=True)
class Wanted:
    """`processes` that a claim takes in all, those before included. `seconds`: for those to come, with all that is
    worth measuring in them; `least`: for as many as a claim needs at least, with nothing but what leads. `spread`: how
    far windows of the training as written differed, as a deviation of logs. `asked`: the user said how many processes.
    """

    processes: int
    seconds: float
    least: float
    spread: float
    asked: bool = False


def window_spread(pairs: Sequence[Pair]) -> float:
    """By how much windows of the same training differ, as a deviation of logs; 0 where nothing tells."""
    seen = [abs(pair.promised) for pair in pairs if pair.key == CONTROL]
    # Of a normal deviation, half the values lie within 0.6745 of it. One wild window says little of the others.
    return median(seen) / 0.6745 if seen else 0.0


def processes_for(speed: float, spread: float, fixes_tried: int) -> int:
    """How many processes it takes to claim a setting that looks so many times as fast. Three for what leads nowhere:
    that it does not takes as many. `spread`: as `Wanted`."""
    least = schedule.LEAST_SESSIONS
    if speed <= 1 + speedups.EQUIVALENCE:
        return least
    error = math.hypot(PROCESS_LUCK, spread) / math.sqrt(least)
    supposed = SpeedupEstimate("", speed, 0.0, math.inf, least, least, math.log(speed), error, least - 1.0, 1.0)
    more = speedups.sessions_needed(supposed, floor=speedups.MINIMUM_FLOOR, fixes_tried=fixes_tried)
    most = 1 + schedule.MOST_CONFIRMING
    return most if more is None else min(least + more, most)


def wanted(
    processes: int,
    held: tuple[int, int],
    start_seconds: float,
    baseline_seconds: float,
    blocks: tuple[float, float],
    spread: float,
    *,
    asked: bool = False,
) -> Wanted:
    """What is wanted for so many `processes`. `held`: of those, how many measured everything that is worth it, and how
    many what leads. `blocks`: seconds of a block with the one and with the other. `start_seconds` and
    `baseline_seconds`: what a start and a window as written take."""
    all_of_it, least = (MARGIN * (start_seconds + baseline_seconds + block) for block in blocks)
    more, fewest = max(0, processes - held[0]), max(0, schedule.LEAST_SESSIONS - held[1])
    return Wanted(processes, more * all_of_it, fewest * least, spread, asked)


def extension(want: Wanted, left: float, total: float, *, promising: bool) -> float | None:
    """Seconds to add to a time of which `left` are left to measure, and which is `total` with all else: 0 where it
    suffices, None where no answer would come before the longest time is over, so that more would be for nothing.

    `promising`: whether something leads, or may, since it was not measured yet. If nothing does, the answer takes
    everything that is worth measuring.
    """
    lacking, room = want.seconds - left, max(0.0, LONGEST - total)
    if lacking <= 0:
        return 0.0
    if left + room < (want.least if promising else want.seconds):
        return None
    return min(lacking, room)


def budget_for(want: Wanted, spent: float, start_seconds: float, explaining_share: float) -> float:
    """The budget, in whole minutes, in which a claim of what leads would come if the user set it, after `spent` seconds
    of measuring that would be spent again. `explaining_share`: the part of it that explaining takes."""
    return 60.0 * math.ceil((start_seconds + (spent + want.least) / (1 - explaining_share)) / 60)
