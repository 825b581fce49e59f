"""Which window comes next: how long it is, what a block holds, in which order, and what fits the time left.

Pure: costs in seconds and a random generator come in, orders and sizes go out. Nothing here knows a process or a clock.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Literal

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.knobs import Loading
from bottleneck_doctor.runtime.wire.messages import Found

BASELINE_EVERY = 3
"""At most this many windows of settings stand between two windows of the baseline."""

DEFAULT_PREFETCH = 2
PLAIN_LEAD_IN = 2
"""Steps after a change of setting before caches and allocator have settled, where no queue has to."""
LONG_LEAD_IN = 1.0
"""Seconds of a step from which one of them is enough for that."""

LEAST_STEPS = 6
LEAST_LONG_STEPS = 3
LONG_STEPS_SECONDS = 3.0
"""A window of steps that take half a second or more needs no more of them than last so long, three at the least."""
LEAST_REGULAR_STEPS = 2
"""Two are enough of those that last so long together, where each of them takes as long as the other."""
LEAST_TOLD_STEPS = 2
"""Steps from which a window that explains says something."""
LONGEST_WINDOW_STEPS = 2000

Mode = Literal["timed", "loader_only", "sampled", "phases", "lines", "trace"]
"""`timed` and `loader_only` windows are counted. The others explain: under py-spy, with phase timers and
synchronisation, under line_profiler, under torch.profiler."""


@dataclass(frozen=True)
class Probe:
    """One setting to be measured, by its key. Lower `priority` goes first when time is short."""

    key: str
    setting: tuple[tuple[str, bool | int | float | str], ...]
    mode: Mode = "timed"
    priority: int = 5

    def as_setting(self) -> Setting:
        return dict(self.setting)


def probe(key: str, setting: Setting, *, mode: Mode = "timed", priority: int = 5) -> Probe:
    """A probe from a setting given as a dict."""
    return Probe(key, tuple(sorted(setting.items())), mode, priority)


@dataclass(frozen=True)
class LoopShape:
    """What of the loop decides window sizes. `epoch_batches` is None where epochs have no known end."""

    period: int
    epoch_batches: int | None
    num_workers: int
    prefetch_factor: int
    served: bool
    """Whether a loader feeds the loop, so that the guest serves its batches."""
    usable_cpus: int = 1
    persistent: bool = False

    def loading(self, setting: Setting) -> Loading:
        """How batches are made under a setting; without workers where no loader feeds the loop."""
        own = Loading(self.num_workers, self.prefetch_factor or DEFAULT_PREFETCH, self.persistent)
        made = knobs.loading(setting, own)
        return made if self.served else replace(made, workers=0)


def shape_of(found: Found) -> LoopShape:
    """The shape of a loop as the guest found it."""
    return LoopShape(
        period=found.period,
        epoch_batches=found.epoch_batches_seen or found.epoch_batches,
        num_workers=found.num_workers,
        prefetch_factor=found.prefetch_factor or DEFAULT_PREFETCH,
        served=found.has_loader,
        usable_cpus=found.usable_cpus,
        persistent=found.persistent_workers,
    )


@dataclass(frozen=True)
class WindowSize:
    """Steps to lead in with and to time; with `epochs` > 0 both are whole epochs (`lead_in` and `epochs`).

    `unit`: steps of which the timed part is a multiple.
    """

    lead_in: int
    steps: int
    epochs: int = 0
    unit: int = 1


def whole_epochs(shape: LoopShape, step_seconds: float, target_seconds: float) -> bool:
    """Whether windows should be whole epochs: where an epoch is about as long as a window would be anyway.

    Then the start and end of every epoch is in the window, and the promise is measured and not computed.
    """
    if shape.epoch_batches is None or not shape.served:
        return False
    seconds = shape.epoch_batches * step_seconds
    if seconds <= 2.5 * target_seconds or shape.epoch_batches <= 8:
        return True
    # Where a queue's lead-in would eat most of an epoch, windows inside epochs would hardly ever be timed.
    settled = shape.usable_cpus * (DEFAULT_PREFETCH + 1) + max(LEAST_STEPS, target_seconds / step_seconds)
    return shape.epoch_batches < 2 * settled and seconds <= 4 * target_seconds


def window_size(
    shape: LoopShape,
    setting: Setting,
    mode: Mode,
    step_seconds: float,
    target_seconds: float,
    *,
    epochs: bool,
    warm: bool = False,
    least: int = LEAST_STEPS,
    settled: int | None = None,
) -> WindowSize:
    """How long a window of `setting` should be. `step_seconds` is what a step is expected to take under it. `warm`: its
    process has computed in this way before. `least`: steps that it holds at least. `settled`: steps after which the
    loader's queue is full and no step waits for it any more; None where that is not known.

    Where it isn't, timed steps are a multiple of the number of workers (waiting comes in bursts of that length) and
    lead-in goes past the loader's queue. They are a multiple of the period in any case.
    """
    loading = shape.loading(setting)
    workers = loading.workers
    if epochs and mode == "timed":
        assert shape.epoch_batches is not None
        count = max(1, round(target_seconds / max(1e-9, shape.epoch_batches * step_seconds)))
        settles = (workers > 0 and loading.persistent) or (bool(knobs.settling(setting)) and not warm)
        # Sums over at least a dozen steps, however short the epochs; over half as many where they are long.
        count = max(count, math.ceil(2 * least / shape.epoch_batches))
        return WindowSize(1 if settles else 0, 0, min(count, LONGEST_WINDOW_STEPS))
    least_lead_in = PLAIN_LEAD_IN
    if settled is None:
        settled, unit = loading.depth + workers, math.lcm(max(1, workers), shape.period)
    else:
        unit = shape.period
        if step_seconds >= LONG_LEAD_IN and (warm or not knobs.settling(setting)):
            least_lead_in = 1
    lead_in = _up(max(least_lead_in, settled), shape.period)
    wanted = max(least, math.ceil(target_seconds / max(1e-9, step_seconds)))
    return WindowSize(lead_in, _up(min(wanted, LONGEST_WINDOW_STEPS), unit), unit=unit)


def least_steps(step_seconds: float, *, regular: bool = False) -> int:
    """Steps that a window holds at least: fewer where they are long, for short budgets hold few windows of those.
    `regular`: one takes as long as another."""
    fewest = math.ceil(LONG_STEPS_SECONDS / max(1e-9, step_seconds))
    return max(LEAST_REGULAR_STEPS if regular else LEAST_LONG_STEPS, min(LEAST_STEPS, fewest))


def cut(size: WindowSize, period: int, step_seconds: float, most_seconds: float) -> WindowSize:
    """`size`, cut to what `most_seconds` hold of it, for a window that explains: one step of lead-in and two that count
    at the least, whole periods and, where they fit, as many as there are workers."""
    step = max(1e-9, step_seconds)
    if (size.lead_in + size.steps) * step <= most_seconds:
        return size
    fits = int(most_seconds / step)
    unit = size.unit if size.unit < fits else period
    steps = min(size.steps, max(_up(LEAST_TOLD_STEPS, unit), (fits - 1) // unit * unit))
    return WindowSize(max(1, min(size.lead_in, fits - steps)), steps, unit=unit)


def _up(number: int, unit: int) -> int:
    return max(unit, math.ceil(number / unit) * unit)


def block(
    probes: Sequence[Probe], baseline: Probe, generator: random.Random, *, after_baseline: bool = False
) -> list[Probe]:
    """One window of every probe in random order, with the baseline first, last and every few windows between.

    `after_baseline`: the window before this block was one of the baseline's in the same session, and is its first.
    """
    shuffled = list(probes)
    generator.shuffle(shuffled)
    # Two gaps at least: a baseline window between two others is the control, the baseline measured as if it were a fix.
    gaps = max(min(2, len(shuffled)), math.ceil(len(shuffled) / BASELINE_EVERY))
    order = [] if after_baseline else [baseline]
    for gap in range(gaps):
        start = gap * len(shuffled) // gaps
        end = (gap + 1) * len(shuffled) // gaps
        order += [*shuffled[start:end], baseline]
    return order


def fitting(
    probes: Sequence[Probe], costs: Mapping[str, float], baseline_cost: float, seconds: float, counts: Mapping[str, int]
) -> list[Probe]:
    """The probes that fit into `seconds`, by priority and then by how seldom they were measured (`counts`).

    A probe's cost includes its share of the baseline windows between. The first always fits: a block without any
    setting tells nothing.
    """
    ordered = sorted(probes, key=lambda each: (each.priority, counts.get(each.key, 0)))
    chosen: list[Probe] = []
    spent = baseline_cost
    for each in ordered:
        cost = costs.get(each.key, baseline_cost) + baseline_cost / BASELINE_EVERY
        if chosen and spent + cost > seconds:
            continue
        spent += cost
        chosen.append(each)
    return chosen


def typical_step(step_seconds: Sequence[float], num_workers: int, period: int = 1) -> float:
    """Seconds that a step seems to take, to plan by; nothing is claimed from it. 0.1 where no step was timed.

    The median shrugs off a stall of a busy machine. With workers, waiting comes in bursts that a median does not see;
    nor does it see what lies in one step of each `period` only, so it is that of whole periods.
    """
    steps = step_seconds[1:] or step_seconds
    if period > 1 and len(steps) >= period:
        steps = [fmean(steps[end - period : end]) for end in range(len(steps), period - 1, -period)]
    if not steps:
        return 0.1
    return max(1e-6, median(steps) if num_workers == 0 else fmean(steps))


def level(step_seconds: Sequence[float], tolerance: float = 0.05) -> bool:
    """Whether the last steps observed were as fast as those before them, so that nothing is left to warm up."""
    third = len(step_seconds) // 3
    if third < 2:
        return False
    late, earlier = step_seconds[-third:], step_seconds[-2 * third : -third]
    return abs(math.log(max(1e-9, sum(late)) / max(1e-9, sum(earlier)))) < tolerance


REGULAR = 0.05
"""Spread of steps, as a part of their mean, up to which two of them say what a third would say."""
SURE_OF_STEPS = 4
"""Steps from which they are known to be alike."""


def regular(step_seconds: Sequence[float]) -> bool:
    """Whether steps repeat within a few percent, by the last ones that were seen: the first of all warm up."""
    last = step_seconds[-max(SURE_OF_STEPS, len(step_seconds) // 2) :]
    return len(last) >= SURE_OF_STEPS and alike(last)


def alike(step_seconds: Sequence[float]) -> bool:
    """Whether these steps took equally long, but for a few percent."""
    return not step_seconds or pstdev(step_seconds) <= REGULAR * fmean(step_seconds)


def around_best(measured: Mapping[int, float], limit: int) -> list[int]:
    """Worker counts to add to a sweep: beyond its top where that is still the best, and between the best and its
    neighbours. `measured` is speed by number of workers; `limit` the most workers worth starting."""
    counts = sorted(measured)
    positive = [count for count in counts if count > 0]
    if not positive:
        return []
    best = max(counts, key=lambda count: measured[count])
    extra: list[int] = []
    if best == positive[-1] and best * 2 <= limit:
        others = [measured[count] for count in counts if count != best]
        if not others or measured[best] > 1.03 * max(others):
            extra.append(best * 2)
    for low, high in pairwise(positive):
        if best in (low, high) and high - low > 1:
            extra.append((low + high) // 2)
    return [count for count in dict.fromkeys(extra) if count not in measured]


def fewest_workers(measured: Mapping[int, float], tolerance: float = 0.02) -> int:
    """The smallest worker count whose speed is within `tolerance` of the best: more processes must earn their place."""
    best = max(measured.values())
    return min(count for count, speed in measured.items() if speed >= best * (1 - tolerance))


@dataclass(frozen=True)
class Plan:
    """How an examination divides its time: sessions, seconds a session, and seconds a timed window."""

    sessions: int
    session_seconds: float
    window_seconds: float


LEAST_SESSIONS = 3
LEAST_SESSION_SECONDS = 20.0
"""Seconds of measuring a session below which fewer sessions are planned: many thin ones hold too few settings each."""


def plan(budget: float, setup_seconds: float, step_seconds: float, probes: int, sessions: int | None) -> Plan:
    """Divide `budget` seconds. One session explores and three confirm, since processes differ; where starting is dear,
    the first must do both."""
    if sessions is None:
        sessions = LEAST_SESSIONS + 1
        if budget / sessions - setup_seconds < max(LEAST_SESSION_SECONDS, 0.7 * setup_seconds):
            sessions = LEAST_SESSIONS
    session_seconds = budget / sessions
    windows = probes + probes / BASELINE_EVERY + 1
    window = (session_seconds - setup_seconds) / (windows * 1.6)
    return Plan(sessions, session_seconds, min(4.0, max(0.6, window, LEAST_STEPS * min(step_seconds, 0.15))))


def session_share(left: float, others: int, setup_seconds: float, least: float) -> float:
    """Seconds of measuring for a session that stands at its loop, with `left` seconds to go and `others` to come.

    Those start first, which is on nobody's bill yet; one that could not measure for `least` seconds after that will not
    come, and leaves its time to the rest.
    """
    coming = min(others, max(0, int((left - least) // (setup_seconds + least))))
    return (left - coming * setup_seconds) / (coming + 1)


def block_seconds(probes: Sequence[Probe], costs: Mapping[str, float], baseline_cost: float) -> float:
    """About how long a block of these probes takes, with the baseline windows between them."""
    windows = sum(costs.get(each.key, baseline_cost) for each in probes)
    return windows + baseline_cost * (1 + math.ceil(len(probes) / BASELINE_EVERY))


MOST_CONFIRMING = 7
"""Sessions after the first: from eight on, another one narrows an interval by a few percent only."""
WORTH_A_START = 0.6
"""Part of its windows that a last session must have room for: the best of each fix are the first of them."""


def confirming(
    plan: Plan,
    held: int,
    left: float,
    setup_seconds: float,
    window_seconds: float,
    blocks: tuple[float, float],
    *,
    news: bool,
) -> Plan:
    """The plan once `held` sessions have chosen what is worth measuring, with `left` seconds to go.

    Processes differ more than the windows of one process do, so time goes into as many sessions as hold one block, and
    not into further blocks of fewer. `blocks`: seconds of a block while settings still lack the sessions that a claim
    needs, and of one that measures only what is worth more than those. Where there is less time than that, settings
    that were chosen but not measured yet (`news`) still get the sessions that a claim needs, if each has room for a
    setting between two baselines.
    """
    whole, later = (setup_seconds + window_seconds + block for block in blocks)
    more = min(int(left // whole), max(0, LEAST_SESSIONS - held))
    if left > more * whole:
        more += int((left - more * whole) / later + 1 - WORTH_A_START)
    more = max(plan.sessions - held, more)
    if news and left / LEAST_SESSIONS >= setup_seconds + 4 * window_seconds:
        more = max(more, LEAST_SESSIONS)
    more = min(more, max(MOST_CONFIRMING, plan.sessions - held))
    return Plan(held + more, left / more if more else 0.0, plan.window_seconds)
