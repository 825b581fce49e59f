"""How much time an examination needs, once its first process has shown what leads, and what windows and starts take.

Pure: costs in seconds and rough speeds come in, seconds go out. A claim of a small difference needs at least three
processes (`speedups`). If starts or steps are long, three of them don't fit the time that is otherwise enough.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bottleneck_doctor.documents.labels import CONTROL
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.pairing import Pair
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.speedups import SpeedupEstimate
from bottleneck_doctor.statistics.spread import Spread, with_others

LONGEST = 600.0
"""Most seconds that everything takes if the user set no budget, unless the first start takes most of them."""
PROCESS_LUCK = 0.03
"""How much processes are assumed to differ before a second one was seen: a standard deviation of logs. Most differ by 1
to 3 %."""
BEYOND_CHANCE = 2.0
"""By how many standard deviations a setting has to look faster before it counts as leading."""
MARGIN = 1.2
"""Expected times are multiplied by this: starts and windows may take longer, and some processes have to warm up."""


@dataclass(frozen=True)
class Wanted:
    """The time that an examination still needs. `processes`: how many a claim takes, including those already run.
    `seconds`: for the processes to come, with everything worth measuring. `least`: for the fewest that a claim needs,
    with nothing but the leading setting. `spread`: how much windows of the training as written differed, as a standard
    deviation of logs. `asked`: whether the user said how many processes.
    """

    processes: int
    seconds: float
    least: float
    spread: float
    asked: bool = False


def window_spread(pairs: Sequence[Pair]) -> float:
    """How much windows of the same training differ, as a standard deviation of logs; 0 if that was not seen."""
    seen = [abs(pair.promised) for pair in pairs if pair.key == CONTROL]
    # In a normal distribution, half of the values lie within 0.6745 standard deviations. The median ignores outliers.
    return median(seen) / 0.6745 if seen else 0.0


def leads(pairs: Sequence[Pair], tried: Collection[str], least: float) -> bool:
    """Whether one of the settings `tried` looks over `least` times as fast as written, and by more than windows of the
    same training differ: of ten settings that bring nothing, one looks faster by 1.5 standard deviations."""
    spread = window_spread(pairs)
    seen: dict[str, list[float]] = {}
    for pair in pairs:
        if pair.key in tried:
            seen.setdefault(pair.key, []).append(pair.promised)
    return any(
        fmean(logs) > max(math.log(least), BEYOND_CHANCE * spread / math.sqrt(len(logs))) for logs in seen.values()
    )


def processes_for(speed: float, spread: float, fixes_tried: int) -> int:
    """How many processes it takes to claim a setting that looks `speed` times as fast as written. Three if it brings
    nothing, because it takes three to be sure of that as well. `spread`: see `Wanted`."""
    least = schedule.LEAST_SESSIONS
    if speed <= 1 + speedups.EQUIVALENCE:
        return least
    error = math.hypot(PROCESS_LUCK, spread) / math.sqrt(least)
    supposed = SpeedupEstimate("", speed, 0.0, math.inf, least, least, math.log(speed), error, least - 1.0, 1.0)
    more = speedups.sessions_needed(supposed, floor=speedups.MINIMUM_FLOOR, fixes_tried=fixes_tried)
    most = 1 + schedule.MOST_CONFIRMING
    return most if more is None else min(least + more, most)


def fewest_for(speed: float, spread: float, fixes_tried: int) -> int:
    """The fewest processes with which a setting could be claimed that looks `speed` times as fast as written: two if
    that is large beside what processes of other programs differ by, else three. `spread`: see `Wanted`."""
    seen = with_others(Spread(math.hypot(PROCESS_LUCK, spread) ** 2, 1.0))
    quantile = student_t_quantile(1 - speedups.SIGNIFICANCE / (2 * max(1, fixes_tried)), seen.degrees_of_freedom)
    two = speedups.SESSIONS_OF_A_LARGE_CLAIM
    low = math.log(speed) - quantile * math.sqrt(seen.variance / two)
    return two if low > math.log1p(speedups.MINIMUM_FLOOR) else schedule.LEAST_SESSIONS


def wanted(
    processes: int,
    held: tuple[int, int],
    start_seconds: float,
    baseline_seconds: float,
    blocks: tuple[float, float],
    spread: float,
    *,
    fewest: int = schedule.LEAST_SESSIONS,
    asked: bool = False,
) -> Wanted:
    """The time for `processes` in all, `fewest` at least. `held`: how many of them have already measured everything
    worth measuring, and how many the leading setting. `blocks`: seconds of a block with everything, and with the
    leading setting alone. `start_seconds` and `baseline_seconds`: what a start and a window as written take."""
    all_of_it, least = (MARGIN * (start_seconds + baseline_seconds + block) for block in blocks)
    more, lacking = max(0, processes - held[0]), max(0, fewest - held[1])
    return Wanted(processes, more * all_of_it, lacking * least, spread, asked)


def extension(want: Wanted, left: float, total: float, *, promising: bool, longest: float = LONGEST) -> float | None:
    """Seconds to add to the `total` time, of which `left` are left to measure. 0 if it is enough. None if even the
    `longest` time would bring no answer.

    `promising`: whether a setting leads, or may lead because it was not measured yet. If not, the answer needs
    everything that is worth measuring.
    """
    lacking, room = want.seconds - left, max(0.0, longest - total)
    if lacking <= 0:
        return 0.0
    if left + room < (want.least if promising else want.seconds):
        return None
    return min(lacking, room)


def budget_for(want: Wanted, spent: float, start_seconds: float, explaining_share: float) -> float:
    """The budget in seconds, in whole minutes, with which the leading setting could be claimed. It includes the `spent`
    seconds of measuring, which would be spent again. `explaining_share`: the part of it that explaining takes."""
    return 60.0 * math.ceil((start_seconds + (spent + want.least) / (1 - explaining_share)) / 60)
