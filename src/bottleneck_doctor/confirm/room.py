"""Whether there is room for a confirmation: time, memory, and processes that may stand side by side. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from bottleneck_doctor.documents.held_memory import most_bytes
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Result, WindowUse
from bottleneck_doctor.examine import time_wanted
from bottleneck_doctor.examine.pair_costs import BURN_IN_WINDOWS, PAIRS, TOGETHER, one_pair, warming_windows
from bottleneck_doctor.gate.plan import LEAST_ROUNDS, WINDOW_SECONDS
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.starter import LONG_STEP
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.wording import durations, ranking

USUAL_SECONDS = 360.0
"""What an examination and its confirmation may take together, where the user named no time and did not ask for it."""
MOST_SECONDS = time_wanted.LONGEST
"""The same where steps or starts are so long that as many pairs as a claim needs don't fit into `USUAL_SECONDS`. An
edit may bring less than the setting did while a process trained, so it is worth the time."""
SPARE = 2.0
"""How many times as long as expected pairs may take, where the user named no time. Two programs that start side by side
take longer than one, and nobody knows by how much before."""
ENDING = 3.0
"""Seconds kept for the end of processes and for the report."""
MEMORY_TO_SPARE = 1.2
"""How many times the memory that the training has held is counted for each of the two processes."""
SHARED = "Two trainings of several processes each would share this machine."
SIDES = 2
"""Processes of a pair."""
STEPS_A_WINDOW = 3
"""Steps that a window holds at least, with its lead-in, if nothing else is known of windows."""


def costs_of(seen: Costs, promised: float) -> Costs:
    """What windows of a confirmation cost, by what the examination has `seen`. `promised`: how many times as fast the
    changed program is said to be. Workers that keep up as written may not keep up with that."""
    made = seen.with_windows_of(WINDOW_SECONDS)
    if made.supply is not None:
        made.supply = replace(made.supply, step=made.supply.step / max(1.0, promised))
    return made


def seconds_wanted(result: Result, known: Costs | None = None) -> float:
    """About how many seconds it takes to measure as many pairs as a claim needs. `known`: what windows cost."""
    setups = [session.setup_seconds for session in result.method.sessions if session.setup_seconds > 0]
    step = result.baseline.step_ms / 1000 if result.baseline is not None else 0.0
    promise = ranking.promise(result)
    first = 0.0 if promise is None or promise.preparation is None else promise.preparation.seconds
    return _pairs_seconds(setups, step, known, first)


def seconds_kept(setups: Sequence[float], seen: Costs, promised: float) -> float:
    """Seconds that an examination leaves for the confirmation of a setting that looks `promised` times as fast.
    `setups`: what its starts took. `seen`: what its windows cost."""
    return time_wanted.MARGIN * _pairs_seconds(setups, seen.baseline_step, costs_of(seen, promised), 0.0) + ENDING


def _pairs_seconds(setups: Sequence[float], step: float, known: Costs | None, preparing: float) -> float:
    """Seconds of as many pairs as a claim needs. `step`: of the training as written. `preparing`: what the changed
    program takes once before it trains."""
    window, warming, looks = max(WINDOW_SECONDS, STEPS_A_WINDOW * step), BURN_IN_WINDOWS, 0
    if known is not None:
        window, warming = known.measuring(schedule.probe(BASELINE, {})), warming_windows(known)
        # Where steps are long, the windows that count tell what workers hold.
        looks = SIDES * int(known.shape.num_workers > 0 and not known.has_long_steps)
    usual = median(setups) if setups else 0.0
    # Unless the first pair is told the loop, it takes as long to find it as the first process did.
    told = known is not None and known.baseline_step >= LONG_STEP
    finding = TOGETHER * max(0.0, setups[0] - usual) if setups and not told else 0.0
    pair = one_pair(1, usual + preparing, window, rounds=LEAST_ROUNDS, warming=warming)
    # After the rounds of one pair, one more window of each side shows what its workers hold.
    return PAIRS * pair + looks * window + finding + ENDING


def seconds_left(result: Result, budget: float | None, *, asked: bool, known: Costs | None = None) -> float | None:
    """How many seconds there are, of the user's `budget`, or of what may be taken without one; None: as many as it
    takes, because the user `asked` for it."""
    if asked:
        return None
    spent = _spent(result)
    if budget is not None:
        return budget - spent
    return max(USUAL_SECONDS - spent, min(SPARE * _expected(result, known), MOST_SECONDS - spent))


def pairs_planned(result: Result, budget: float | None, left: float | None, known: Costs | None = None) -> int:
    """How many pairs the time `left` is planned for: as many as a claim needs, or as many more as leave each of them no
    longer than that, if there is more time than is expected to be needed. `budget`: the user's."""
    if left is None or budget is not None or left <= USUAL_SECONDS - _spent(result):
        return PAIRS
    return max(PAIRS, round(PAIRS * left / _expected(result, known)))


def _spent(result: Result) -> float:
    """Seconds of the examination, and of confirmations of other promises."""
    return result.method.seconds + sum(each.confirmation.seconds for each in result.refused) + ENDING


def _expected(result: Result, known: Costs | None) -> float:
    return time_wanted.MARGIN * seconds_wanted(result, known)


def not_unasked(result: Result, start: Start) -> str:
    """The sentence that says why two of these trainings are not started side by side unless the user asks for it; ""
    where they may be."""
    if result.ranks:
        return SHARED
    return never_unasked(start)


def never_unasked(start: Start) -> str:
    """The same for what is known before anything is started."""
    if start.listen is not None:
        return SHARED
    return "With --in-place, two trainings would write the same files." if start.in_place else ""


def no_time(result: Result, left: float | None, known: Costs | None = None) -> str:
    """The sentence that says that there is too little time left; "" where there is enough."""
    wanted = seconds_wanted(result, known)
    if left is None or left >= wanted:
        return ""
    return f"It would take about {durations.spoken_duration(10 * math.ceil(wanted / 10))} more."


def no_memory(result: Result, free_bytes: Callable[[], int | None]) -> str:
    """The sentence that says that two processes of the training may not fit into memory; "" where they do, or where
    nobody can tell."""
    held, free = most_bytes(result), free_bytes()
    if held is not None and free is not None and free < 2 * MEMORY_TO_SPARE * held:
        return "Two processes of it side by side may not fit into memory."
    devices = [each for use in _uses(result) for each in use.devices]
    for device in devices:
        used, total = device.memory_bytes, device.memory_total_bytes
        if used is not None and total and 2 * MEMORY_TO_SPARE * used > total:
            return "Two processes of it side by side may not fit into the memory of the GPU."
    return ""


def _uses(result: Result) -> list[WindowUse]:
    return [] if result.utilization is None else result.utilization.windows
