"""Compares processes of the head with those of a stored baseline, for each metric: measurements in, verdicts out. Pure.

Metrics, limits and words are those of a check of pairs. But the processes of both sides did not run side by side, so
the time at which they ran is another source of random variation (`against`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from bottleneck_doctor.documents.check import (
    DATA_WAIT,
    DEVICE_MEMORY,
    DEVICE_RESERVED,
    EPOCH_OVERHEAD,
    FIRST_STEP,
    HOST_MEMORY,
    PHASE,
    STEP_TIME,
    Culprit,
    Metric,
)
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.documents.stored_baseline import Draw, moment
from bottleneck_doctor.gate import decide, metrics, verdict
from bottleneck_doctor.gate.baseline import against, aging
from bottleneck_doctor.gate.cause.culprits import grown
from bottleneck_doctor.gate.limits import KINDS, MetricLimit
from bottleneck_doctor.gate.metrics import LEAST_PHASE, Judging, Series
from bottleneck_doctor.measure.side_pairs import SideSample
from bottleneck_doctor.statistics.spread import variance
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import amount_text

ASSUMED = {"seconds": 0.15, "bytes": 0.02, "share": 0.05}
"""The assumed standard deviation between times, by unit (relative, or points), if fewer than three times are stored.
For seconds, a loop that is bound by the memory of a shared machine may vary this much: its speed was seen to go from 10
to 15 GB/s and back."""
ASSUMED_FIRST_STEP = 0.5
"""The same for the time to the first step: a start reads files, and finds them in the page cache or not."""

OLD = 1.5
"""A baseline is called old once its age widens the interval of the step time by this factor."""

_MICROSECOND = 1e-6

FIGURES: Mapping[str, Callable[[SideSample], float | None]] = {
    DATA_WAIT: SideSample.wait_share,
    HOST_MEMORY: lambda side: side.peak_bytes,
    DEVICE_MEMORY: lambda side: side.device_bytes,
    DEVICE_RESERVED: lambda side: side.device_reserved_bytes,
    FIRST_STEP: lambda side: side.first_step,
    EPOCH_OVERHEAD: SideSample.epoch_overhead,
}
"""Every metric that is one figure of a process: all but the step time and the phases."""


def draw(sample: SideSample, taken: str, *, whole_epochs: bool, first: bool) -> Draw:
    """A process as it is stored. `first`: whether it is the first one of its take. That one may have filled caches, so
    its start is not counted."""
    figures = {name: value for name, read in FIGURES.items() if (value := read(sample)) is not None}
    if first:
        figures.pop(FIRST_STEP, None)
    figures |= {PHASE + name: seconds for name, seconds in (sample.phases or {}).items()}
    return Draw(
        taken=taken,
        steps=list(sample.costs(None).values()),
        samples_per_step=sample.per_step(),
        has_loader=sample.has_loader,
        whole_epochs=whole_epochs,
        of_closure=sample.of_closure,
        figures={name: float(value) for name, value in figures.items()},
    )


# -- metrics -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unpaired(Series):
    """A metric over the head's processes, and over those of the stored times. `differences`: of each of the head's
    processes from the mean of the times.

    `measured`: the head's values and the times', in the unit of differences. `inside`: the standard error that a
    process's number has by its windows alone. `ages`: seconds from each of the times to the head, oldest first.
    """

    measured: tuple[list[float], list[list[float]]] = field(default_factory=lambda: ([], []))
    inside: float = 0.0
    ages: list[float] = field(default_factory=list)

    def known(self) -> against.Against:
        head, times = self.measured
        return against.estimate(head, times, self.inside, assumed(self.id), self.ages)

    def weighted(self) -> against.Against:
        return self.known()

    def smallest(self, threshold: float, how: Judging) -> float | None:
        return against.smallest(self.known(), threshold, how.most_pairs, fixed=how.fixed, error_rate=how.rate(self.id))

    def floor(self, how: Judging) -> float | None:
        """The smallest threshold that can be judged, in the unit of thresholds. None if there is one process only,
        which says nothing about how much processes differ."""
        if len(self.measured[0]) < 2:
            return None
        found = against.floor(self.known(), how.most_pairs, fixed=how.fixed)
        return None if found is None else metrics.told(found, self.unit)


def assumed(name: str) -> float:
    """The assumed standard deviation of a metric between times, in the unit of differences."""
    return ASSUMED_FIRST_STEP if name == FIRST_STEP else ASSUMED[KINDS[name].unit]


def series(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> list[Unpaired]:
    """Every metric that either side has, and those that every check has."""
    times, head = _sized(times, head)
    found = [_step_time(times, head)]
    for name in FIGURES:
        # The start of a take's first process is not counted. So with a single process the metric is unknown, not gone.
        counted = [] if name == FIRST_STEP and len(head) < 2 else times
        found.append(_figure(name, counted, head))
    return [*found, *_phases(times, head)]


def judged(times: Sequence[Sequence[Draw]], head: Sequence[Draw], how: Judging) -> list[Metric]:
    """A verdict on every metric that is not switched off. `how.most_pairs` counts processes of the head."""
    return metrics.judged_series(series(times, head), how)


def _step_time(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> Unpaired:
    size = _step_of_base(times, head)

    def costs(each: Draw) -> list[float]:
        return each.steps if size is None else [cost * size / each.samples_per_step for cost in each.steps]

    def log(each: Draw) -> float:
        # The log of the mean and not the mean of logs, so that an occasional stall weighs as much as it takes.
        return math.log(fmean(costs(each)))

    every = [*head, *(each for time in times for each in time)]
    errors = [variance(each.steps) / len(each.steps) / fmean(each.steps) ** 2 for each in every if len(each.steps) > 1]
    base = [fmean(costs(each)) for time in times for each in time]
    return _made(
        STEP_TIME,
        (base, [fmean(costs(each)) for each in head]),
        [[log(each) for each in time] for time in times],
        [log(each) for each in head],
        math.sqrt(fmean(errors)) if errors else 0.0,
        _ages(times, head),
    )


def _ages(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> list[float]:
    """Seconds from the beginning of each time to that of the head, or of the last time where there is no head."""
    begun = [moment(time[0].taken) for time in times]
    if not begun:
        return []
    now = moment(head[0].taken) if head else begun[-1]
    return [(now - each).total_seconds() for each in begun]


def _step_of_base(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> float | None:
    """The samples of a step of the base, to which all times are converted; None unless both sides count samples."""
    base = [each for time in times for each in time]
    if not all(each.has_loader for each in (*base, *head)):
        return None
    return fmean(each.samples_per_step for each in base)


def _sized(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> tuple[list[list[Draw]], list[Draw]]:
    """The measurements, with the phases converted to a step of the base's size if both sides count samples."""
    size = _step_of_base(times, head)

    def sized(each: Draw) -> Draw:
        if size is None:
            return each
        scale = size / each.samples_per_step
        figures = {name: value * scale if name.startswith(PHASE) else value for name, value in each.figures.items()}
        return replace(each, figures=figures)

    return [list(map(sized, time)) for time in times], list(map(sized, head))


def _figure(name: str, times: Sequence[Sequence[Draw]], head: Sequence[Draw], least: float | None = None) -> Unpaired:
    """A metric that is one figure of a process. Values below `least` count as `least`."""
    least = metrics.least_of(name) if least is None else least

    def known(draws: Sequence[Draw]) -> list[float]:
        return [each.figures[name] for each in draws if name in each.figures]

    def unit(values: Sequence[float]) -> list[float]:
        return [value if KINDS[name].unit == "share" else math.log(max(value, least)) for value in values]

    kept = [(time, values) for time in times if (values := known(time))]
    seen, now = [values for _, values in kept], known(head)
    shown = ([value for values in seen for value in values], now)
    return _made(name, shown, [*map(unit, seen)], unit(now), ages=_ages([time for time, _ in kept], head))


def _phases(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> list[Unpaired]:
    """Phases that are a noticeable part of a step on either side."""
    base_means, head_means = phase_means([each for time in times for each in time]), phase_means(head)
    found = []
    for name in KINDS:
        if not name.startswith(PHASE) or not base_means or not head_means:
            continue
        if max(_share(base_means, name), _share(head_means, name)) < LEAST_PHASE:
            continue
        least = metrics.LEAST_PHASE_TOLD * sum(base_means.values())
        found.append(_figure(name, _with(times, name), _with([head], name)[0], least))
    return found


def _with(times: Sequence[Sequence[Draw]], phase: str) -> list[list[Draw]]:
    """The measurements with phases, each with a value for this one: a phase that is missing among them took no time."""

    def filled(each: Draw) -> Draw:
        return replace(each, figures={phase: 0.0, **each.figures})

    return [[filled(each) for each in time if _shows_phases(each)] for time in times]


def _shows_phases(draw: Draw) -> bool:
    return any(name.startswith(PHASE) for name in draw.figures)


def phase_means(draws: Sequence[Draw]) -> dict[str, float]:
    """Mean seconds a step of each phase, by metric, over the processes that showed phases."""
    seen = [each.figures for each in draws if _shows_phases(each)]
    names = {name for figures in seen for name in figures if name.startswith(PHASE)}
    return {name: fmean(figures.get(name, 0.0) for figures in seen) for name in names}


def _share(means: Mapping[str, float], name: str) -> float:
    return means.get(name, 0.0) / max(_MICROSECOND, sum(means.values()))


def _made(
    name: str,
    shown: tuple[list[float], list[float]],
    times: list[list[float]],
    head: list[float],
    inside: float = 0.0,
    ages: Sequence[float] = (),
) -> Unpaired:
    base = fmean(map(fmean, times)) if times else 0.0
    differences = [value - base for value in head] if times else []
    return Unpaired(name, shown[0], shown[1], differences, measured=(head, times), inside=inside, ages=list(ages))


# -- what is said ------------------------------------------------------------------------------------------------------


def weak_evidence(
    times: Sequence[Sequence[Draw]],
    head: Sequence[Draw],
    how: Judging,
    found: Sequence[Metric],
    minutes: int | None = None,
) -> list[Warning]:
    """Warnings about what makes the verdicts weaker. `minutes`: what enough processes would take; None if it was not
    the time that ended measuring."""
    said = []
    if len(times) < against.LEAST_TIMES:
        said.append(
            Warning(
                slug="few-times",
                sentence=f"The baseline was measured at {words.count_text(len(times), 'time')} only, which doesn't "
                "show how much the speed of this machine varies from one time to another; "
                f"{words.share_text(ASSUMED['seconds'])} is assumed. Run `doctor baseline` with the same file again, "
                "an hour later or more.",
            )
        )
    if len(head) < decide.LEAST_PAIRS:
        said.append(verdict.few_pairs(processes_text(len(head)), minutes))
    by_name = {each.id: each for each in series(times, head)}
    for metric in verdict.deciding(found) if len(times) >= against.LEAST_TIMES else []:
        floor = by_name[metric.id].floor(how) if metric.verdict == "cannot_tell" else None
        if floor is not None and metric.threshold < floor:
            said.append(
                Warning(
                    slug="threshold-below-noise",
                    sentence=f"{metric.title}: a threshold of {amount_text(metric.unit, metric.threshold)} can't be "
                    "judged against this baseline. Its measurements at "
                    f"{len(times)} times differ so much that {_least(metric, floor)}",
                )
            )
    return said + _old(by_name[STEP_TIME]) + _other_loop(times, head)


def _old(step: Unpaired) -> list[Warning]:
    """Where what times drift by since the last one makes the interval of the step time wider by half and more."""
    head, times = step.measured
    if len(head) < 2 or not times:
        return []
    known = step.known()
    variance_now = sum(known.parts(len(head)))
    widened = math.sqrt(variance_now / (variance_now - known.aged)) if known.aged else 1.0
    if widened < OLD:
        return []
    days = round(step.ages[-1] / 86_400)
    age = words.count_text(days, "day") if days else words.duration_text(step.ages[-1])
    return [
        Warning(
            slug="baseline-old",
            sentence=f"The baseline was last measured {age} ago, and its times drift: "
            f"those that lie near each other differ less. So the interval of the step time is {widened:.1f} times as "
            "wide as it would be without drift. Run `doctor baseline` with the same file again.",
        )
    ]


def trend(times: Sequence[Sequence[Draw]]) -> float | None:
    """By how much the step time has risen from the first stored time to the last, as a share; None where that may be
    chance."""
    if not times:
        return None
    step = _step_time(times, [])
    found = aging.trend([fmean(time) for time in step.measured[1]], step.ages)
    return None if found is None else math.expm1(found)


def _least(metric: Metric, floor: float) -> str:
    """The smallest threshold that could be judged, and what would help."""
    if floor > verdict.MOST_USEFUL:
        most = amount_text(metric.unit, verdict.MOST_USEFUL)
        return f"not even {most} can be judged. Measure the baseline at more times, or give `--base-ref` instead."
    return (
        f"the least threshold that can be judged is {amount_text(metric.unit, floor)}. Raise the threshold, or measure "
        "the baseline at more times."
    )


def _other_loop(times: Sequence[Sequence[Draw]], head: Sequence[Draw]) -> list[Warning]:
    if not head:
        return []
    base = [each for time in times for each in time]
    if base[-1].has_loader != head[-1].has_loader:
        where = "base" if base[-1].has_loader else "head"
        told = f"Only the {where} takes batches from a DataLoader, so steps are compared, not samples."
        return [Warning(slug="loops-differ", sentence=told)]
    if base[-1].whole_epochs != head[-1].whole_epochs or (EPOCH_OVERHEAD in base[-1].figures) != (
        EPOCH_OVERHEAD in head[-1].figures
    ):
        told = (
            "The cost of starting and ending an epoch was not measured in the same way on both sides, so a difference "
            "may come from that."
        )
        return [Warning(slug="loops-differ", sentence=told)]
    before, after = (fmean(each.samples_per_step for each in side) for side in (base, head))
    if base[-1].has_loader and abs(after / before - 1) > 0.02:
        told = (
            f"A step has {words.number_text(after)} samples on the head and {words.number_text(before)} in the "
            "baseline, so the head's seconds are given for as many samples as a step of the baseline has."
        )
        return [Warning(slug="loops-differ", sentence=told)]
    return []


def grown_phases(times: Sequence[Sequence[Draw]], head: Sequence[Draw], grew: float) -> list[Culprit]:
    """Phases that explain a step's growth of `grew` seconds, compared with the stored ones."""
    times, head = _sized(times, head)
    sides = [
        {name.removeprefix(PHASE): seconds for name, seconds in phase_means(draws).items()}
        for draws in ([each for time in times for each in time], head)
    ]
    return grown(sides[0], sides[1], grew)


def expected(times: Sequence[Sequence[Draw]], limits: Mapping[str, MetricLimit]) -> float | None:
    """The smallest relative change of the step time that a check against this baseline will detect, by the baseline's
    own spread."""
    most = against.wanted([len(time) for time in times])
    alike = [times[-1][number % len(times[-1])] for number in range(most)]
    how = Judging(limits, None, most, against.looked_at_once(len(times)))
    step = _step_time(times, alike)
    least = step.smallest(metrics.scaled(limits[STEP_TIME].threshold, "seconds"), how)
    return None if least is None else math.expm1(min(least, 700.0))


def processes_text(count: int) -> str:
    """`1 process`, `8 processes`."""
    return "1 process" if count == 1 else f"{count} processes"
