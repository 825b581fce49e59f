"""The schedule: how long windows are, what a block holds and in which order, and what fits the time left.

Pure: costs in seconds and a random generator come in, orders and sizes go out. Nothing here knows a process or a clock.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
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
"""Steps of lead-in for caches and allocator to settle after a change of setting, if there is no queue to fill."""
LONG_LEAD_IN = 1.0
"""If a step takes this many seconds or more, one step of lead-in is enough."""

ABOUT_A_WINDOW = 2.5
"""An epoch is about as long as a window would be anyway up to this many times its length."""
SHORT_EPOCH = 8
"""Batches of an epoch up to which a window is a whole one."""
LEAST_STEPS = 6
LEAST_LONG_STEPS = 3
LONG_STEPS_SECONDS = 3.0
"""If steps take half a second or more, a window needs only as many as last this long, but at least three."""
LEAST_REGULAR_STEPS = 2
"""If these steps all take equally long, two are enough."""
LEAST_TOLD_STEPS = 2
"""Timed steps that a window that explains needs at least."""
LONGEST_WINDOW_STEPS = 2000

Mode = Literal["timed", "loader_only", "sampled", "phases", "lines", "trace"]
"""`timed` and `loader_only` windows are counted. The others explain: under py-spy, with phase timers and
synchronisation, under line_profiler, under torch.profiler."""


@dataclass(frozen=True)
class Probe:
    """One setting to be measured, with its key. A lower `priority` goes first if time is short."""

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
    """The facts about a loop that decide window sizes. `epoch_batches` is None if epochs have no known end."""

    period: int
    epoch_batches: int | None
    num_workers: int
    prefetch_factor: int
    served: bool
    """Whether a loader feeds the loop, so that the guest can serve its batches."""
    usable_cpus: int = 1
    persistent: bool = False

    def loading(self, setting: Setting) -> Loading:
        """How batches are made under a setting; without workers if no loader feeds the loop."""
        own = Loading(self.num_workers, self.prefetch_factor or DEFAULT_PREFETCH, self.persistent)
        made = knobs.loading(setting, own)
        return made if self.served else replace(made, workers=0)


def shape_of(found: Found) -> LoopShape:
    """The shape of a loop as the guest found it."""
    return LoopShape(
        period=found.period,
        epoch_batches=found.epoch_length,
        num_workers=found.num_workers,
        prefetch_factor=found.prefetch_factor or DEFAULT_PREFETCH,
        served=found.has_loader,
        usable_cpus=found.usable_cpus,
        persistent=found.persistent_workers,
    )


@dataclass(frozen=True)
class WindowSize:
    """How many steps to lead in with, and how many to time. With `epochs` > 0, `lead_in` and `epochs` count epochs.

    `unit`: the timed part is a multiple of this many steps. `skipped`: steps that go by before the lead-in.
    """

    lead_in: int
    steps: int
    epochs: int = 0
    unit: int = 1
    skipped: int = 0


def whole_epochs(shape: LoopShape, step_seconds: float, target_seconds: float) -> bool:
    """Whether windows should be whole epochs: if an epoch is about as long as a window would be anyway.

    Then every window includes the start and end of its epochs, and the promised speedup is measured, not computed.
    """
    if shape.epoch_batches is None or not shape.served:
        return False
    seconds = shape.epoch_batches * step_seconds
    if seconds <= ABOUT_A_WINDOW * target_seconds:
        return True
    if shape.epoch_batches <= SHORT_EPOCH:
        # Without a queue to fill, a few steps of a second each fit into one epoch, and a whole one would take long.
        return shape.num_workers > 0 or step_seconds < LONG_LEAD_IN or shape.epoch_batches <= LEAST_LONG_STEPS
    # If the lead-in of a queue took most of an epoch, windows inside epochs would hardly ever be timed.
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
    """How long a window of `setting` should be. `step_seconds`: what a step is expected to take under it. `warm`: its
    process has computed in this way before. `least`: timed steps that it holds at least. `settled`: steps after which
    the loader's queue is full and no step waits for it any more; None if that is not known.

    If `settled` is not known, lead-in goes past the loader's queue, and timed steps are a multiple of the number of
    workers, because waiting comes in bursts of that length. Timed steps are always a multiple of the period.
    """
    loading = shape.loading(setting)
    workers = loading.workers
    if epochs and mode == "timed":
        assert shape.epoch_batches is not None
        count = max(1, round(target_seconds / max(1e-9, shape.epoch_batches * step_seconds)))
        settles = (workers > 0 and loading.persistent) or (bool(knobs.settling(setting)) and not warm)
        # At least a dozen steps together, however short the epochs are; fewer if `least` allows it, for long steps.
        count = max(count, math.ceil(2 * least / shape.epoch_batches))
        return WindowSize(1 if settles else 0, 0, min(count, LONGEST_WINDOW_STEPS))
    least_lead_in = PLAIN_LEAD_IN
    if settled is None:
        settled, unit = loading.depth + workers, math.lcm(max(1, workers), shape.period)
    else:
        unit = shape.period
        if step_seconds >= LONG_LEAD_IN and (warm or not knobs.settling(setting)):
            least_lead_in = 1
    lead_in = in_units(max(least_lead_in, settled), shape.period)
    wanted = max(least, math.ceil(target_seconds / max(1e-9, step_seconds)))
    return WindowSize(lead_in, in_units(min(wanted, LONGEST_WINDOW_STEPS), unit), unit=unit)


def least_steps(step_seconds: float, *, regular: bool = False) -> int:
    """Timed steps that a window holds at least. There are fewer if steps are long, because a short budget has little
    time for long windows. `regular`: all steps take equally long."""
    fewest = math.ceil(LONG_STEPS_SECONDS / max(1e-9, step_seconds))
    return max(LEAST_REGULAR_STEPS if regular else LEAST_LONG_STEPS, min(LEAST_STEPS, fewest))


def cut(size: WindowSize, period: int, step_seconds: float, most_seconds: float) -> WindowSize:
    """`size`, cut to `most_seconds`, for a window that explains. One step of lead-in and two timed steps remain at
    least. Timed steps stay whole periods, and a multiple of the number of workers if that fits."""
    step = max(1e-9, step_seconds)
    if (size.lead_in + size.steps) * step <= most_seconds:
        return size
    fits = int(most_seconds / step)
    unit = size.unit if size.unit < fits else period
    steps = min(size.steps, max(in_units(LEAST_TOLD_STEPS, unit), (fits - 1) // unit * unit))
    return WindowSize(max(1, min(size.lead_in, fits - steps)), steps, unit=unit)


def in_units(number: int, unit: int) -> int:
    """`number`, rounded up to whole units; one at least."""
    return max(unit, math.ceil(number / unit) * unit)


def block(
    probes: Sequence[Probe], baseline: Probe, generator: random.Random, *, after_baseline: bool = False
) -> list[Probe]:
    """One window of every probe in random order, with a baseline window first, last and after every few windows.

    `after_baseline`: the window before this block was a baseline window in the same session, and serves as the first.
    """
    shuffled = list(probes)
    generator.shuffle(shuffled)
    # At least two gaps: the baseline window in the middle is the control, the baseline measured as if it were a fix.
    gaps = max(min(2, len(shuffled)), math.ceil(len(shuffled) / BASELINE_EVERY))
    order = [] if after_baseline else [baseline]
    for gap in range(gaps):
        start = gap * len(shuffled) // gaps
        end = (gap + 1) * len(shuffled) // gaps
        order += [*shuffled[start:end], baseline]
    return order


def blocks(
    parts: Iterable[Sequence[Probe]], baseline: Probe, generator: random.Random, *, after_baseline: bool
) -> list[Probe]:
    """A block of each part in turn. A baseline window between two of them serves both. `after_baseline`: as in
    `block`."""
    order: list[Probe] = []
    for part in parts:
        order += block(part, baseline, generator, after_baseline=after_baseline or bool(order))
    return order


def fitting(
    probes: Sequence[Probe], costs: Mapping[str, float], baseline_cost: float, seconds: float, counts: Mapping[str, int]
) -> list[Probe]:
    """The probes that fit into `seconds`, by priority, and then those first that were measured least (`counts`).

    A probe's cost includes its share of the baseline windows in between. The first probe always fits, because a block
    without any setting shows nothing.
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
    """Seconds that a step seems to take, for planning; nothing is claimed from it. 0.1 if no step was timed.

    Without workers it is the median, which ignores a stall of a busy machine. With workers it is the mean, because
    waiting comes in bursts that a median would miss. If the loop has a `period`, whole periods are averaged first,
    since a median would also miss work that only one step of each period does.
    """
    steps = step_seconds[1:] or step_seconds
    if period > 1 and len(steps) >= period:
        steps = [fmean(steps[end - period : end]) for end in range(len(steps), period - 1, -period)]
    if not steps:
        return 0.1
    return max(1e-6, median(steps) if num_workers == 0 else fmean(steps))


def level(step_seconds: Sequence[float], tolerance: float = 0.05) -> bool:
    """Whether the last third of the steps was as fast as the third before it, so that nothing is left to warm up."""
    third = len(step_seconds) // 3
    if third < 2:
        return False
    late, earlier = step_seconds[-third:], step_seconds[-2 * third : -third]
    return abs(math.log(max(1e-9, sum(late)) / max(1e-9, sum(earlier)))) < tolerance


REGULAR = 0.05
"""Standard deviation of steps, as a part of their mean, up to which two steps say as much as three."""
SURE_OF_STEPS = 4
"""Steps that are needed to know that all are alike."""


def regular(step_seconds: Sequence[float]) -> bool:
    """Whether steps take equally long within a few percent. Only the last ones count, because the first warm up."""
    last = step_seconds[-max(SURE_OF_STEPS, len(step_seconds) // 2) :]
    return len(last) >= SURE_OF_STEPS and alike(last)


def alike(step_seconds: Sequence[float]) -> bool:
    """Whether these steps took equally long within a few percent."""
    return not step_seconds or pstdev(step_seconds) <= REGULAR * fmean(step_seconds)


def around_best(measured: Mapping[int, float], limit: int) -> list[int]:
    """Worker counts to add to a sweep: twice the largest if that is still the best, and counts between the best and its
    neighbours. `measured`: speed by number of workers. `limit`: the most workers worth starting."""
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
    """The smallest worker count whose speed is within `tolerance` of the best: more workers have to bring something."""
    best = max(measured.values())
    return min(count for count, speed in measured.items() if speed >= best * (1 - tolerance))


@dataclass(frozen=True)
class Plan:
    """How an examination divides its time: sessions, seconds for each session, and seconds for each timed window."""

    sessions: int
    session_seconds: float
    window_seconds: float


LEAST_SESSIONS = 3
LEAST_SESSION_SECONDS = 20.0
"""If sessions would measure for less than this many seconds, fewer are planned: short ones hold too few settings."""


def plan(budget: float, setup_seconds: float, step_seconds: float, probes: int, sessions: int | None) -> Plan:
    """Divide `budget` seconds. One session explores and three confirm, because processes differ. If starts are slow,
    the first session counts as one of the three."""
    if sessions is None:
        sessions = LEAST_SESSIONS + 1
        if budget / sessions - setup_seconds < max(LEAST_SESSION_SECONDS, 0.7 * setup_seconds):
            sessions = LEAST_SESSIONS
    session_seconds = budget / sessions
    windows = probes + probes / BASELINE_EVERY + 1
    window = (session_seconds - setup_seconds) / (windows * 1.6)
    return Plan(sessions, session_seconds, min(4.0, max(0.6, window, LEAST_STEPS * min(step_seconds, 0.15))))


def session_share(left: float, others: int, setup_seconds: float, least: float) -> float:
    """Seconds of measuring for a session that stands at its loop, if `left` seconds are left and `others` are to come.

    The others first have to start, which also takes time. A session that could not measure for `least` seconds after
    its start will not come, and leaves its time to the rest.
    """
    coming = min(others, max(0, int((left - least) // (setup_seconds + least))))
    return (left - coming * setup_seconds) / (coming + 1)


def block_seconds(probes: Sequence[Probe], costs: Mapping[str, float], baseline_cost: float) -> float:
    """About how many seconds a block of these probes takes, with the baseline windows between them."""
    windows = sum(costs.get(each.key, baseline_cost) for each in probes)
    return windows + baseline_cost * (1 + math.ceil(len(probes) / BASELINE_EVERY))


MOST_CONFIRMING = 7
"""Most sessions after the first: from the eighth on, another one narrows an interval by only a few percent."""
WORTH_A_START = 0.6
"""Part of its windows that the last session must have time for: the best setting of each fix comes first."""


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
    """The plan for the `left` seconds, after `held` sessions have chosen what is worth measuring.

    Processes differ more than the windows of one process do. So there are as many sessions as can hold one block each,
    instead of more blocks in fewer sessions. `blocks`: seconds of a block as long as settings lack the sessions that a
    claim needs, and of the shorter blocks after that. If time is short, settings that were chosen but not measured yet
    (`news`) still get the sessions that a claim needs, if each has time for a setting between two baselines.
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
