"""What the pairs say of each metric: windows, phases and memory of both sides in, one number a pair and a verdict out.

Pure. Every metric is a difference inside a pair, whose processes ran side by side: logs of ratios for seconds and
bytes, points for shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, variance

from bottleneck_doctor import evidence as ev
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.document import Metric, PairRecord, Unit, Verdict
from bottleneck_doctor.gate.limits import (
    DATA_WAIT,
    DEVICE_MEMORY,
    DEVICE_RESERVED,
    EPOCH_TURN,
    FIRST_STEP,
    HOST_MEMORY,
    KINDS,
    PHASE,
    STEP_TIME,
    Limit,
)
from bottleneck_doctor.gate.prospect import Prospect, prospect
from bottleneck_doctor.render.check_words import amount_text, value_text
from bottleneck_doctor.result import Window

LEAST_TURN = 0.05
"""Seconds below which an epoch's start and end are nobody's concern; shorter ones count as this."""
LEAST_PHASE = 0.05
"""Part of a step below which a phase is too small to be a metric of its own."""
_MICROSECOND = 1e-6


@dataclass(frozen=True, kw_only=True)
class SideSample:
    """What one process of a pair showed. `windows`: of the training as written, the round as their block.

    `first_step`: seconds from the process's start. `phases`: seconds a step, None where they could not be seen.
    """

    windows: list[Window]
    has_loader: bool
    epoch_batches: int | None
    first_step: float | None = None
    peak_bytes: int | None = None
    device_bytes: int | None = None
    device_reserved_bytes: int | None = None
    phases: Mapping[str, float] | None = None

    def per_step(self) -> float:
        """Mean samples a step."""
        return ev.samples_per_step(self.windows)

    def turn(self) -> float | None:
        """What an epoch's start and end cost, in seconds; None where whole epochs were timed or none was seen."""
        turns = [window.turn_seconds for window in self.windows if ev.usable(window) and not window.whole_epochs]
        known = [turn for turn in turns if turn is not None]
        return fmean(known) if known else None

    def costs(self, per_step: float | None) -> dict[int, float]:
        """Seconds that a step of the user's loop takes, epochs included, by round.

        `per_step`: the samples of the step that is meant; None: of a step of its own.
        """
        own = self.per_step()
        size = own if per_step is None else per_step
        usable = [window for window in self.windows if ev.usable(window)]
        steps = {window.block: ev.step_cost(window, size) for window in usable}
        turn = self.turn()
        if turn is None or not self.epoch_batches or not steps:
            return steps
        share = turn / self.epoch_batches * size / own
        # Lead-in is a few steps, so a turn is known roughly: it may not eat up the steps.
        share = max(share, -0.5 * fmean(steps.values()))
        return {number: cost + share for number, cost in steps.items()}

    def wait_share(self) -> float | None:
        """Part of the time that was spent waiting for the next batch; None where no loader feeds the loop."""
        usable = [window for window in self.windows if ev.usable(window)]
        seconds = sum(window.seconds for window in usable)
        if not self.has_loader or seconds <= 0:
            return None
        return min(1.0, sum(window.wait_seconds for window in usable) / seconds)


@dataclass(frozen=True)
class Ratio:
    """The log of a ratio, and how far off it may be by the rounds of its pair alone; None where there was but one."""

    log: float
    own: decide.Own | None


@dataclass(frozen=True, kw_only=True)
class PairSample:
    """A pair of processes, one of each side."""

    number: int
    base: SideSample
    head: SideSample

    def rounds(self) -> list[tuple[float, float]]:
        """What a step cost on the base and on the head in each round. Of loops that take samples it is the same number
        of them: a step of the base's size."""
        per_step = self.base.per_step() if self.base.has_loader and self.head.has_loader else None
        base, head = self.base.costs(per_step), self.head.costs(per_step)
        return [(base[number], head[number]) for number in sorted(base.keys() & head.keys())]

    def phases(self) -> tuple[Mapping[str, float], Mapping[str, float]] | None:
        """Seconds of each phase of a step on the base and on the head, as `rounds` has steps; None where either side's
        could not be seen."""
        base, head = self.base.phases, self.head.phases
        if not base or not head:
            return None
        size = 1.0
        if self.base.has_loader and self.head.has_loader:
            size = self.base.per_step() / self.head.per_step()
        return base, {name: seconds * size for name, seconds in head.items()}

    def ratio(self) -> Ratio:
        """Head over base of a step's mean cost."""
        rounds = self.rounds()
        base, head = fmean(base for base, _ in rounds), fmean(head for _, head in rounds)
        # Of sums and not of rounds: a stall now and then weighs as much in short windows as in long ones.
        known = head / base
        off = [head - known * base for base, head in rounds]
        own = None
        if len(off) > 1:
            own = decide.Own(math.sqrt(variance(off, 0.0) / len(off)) / head, len(off) - 1)
        return Ratio(math.log(known), own)

    def record(self) -> PairRecord:
        """The pair as the document tells it."""
        rounds, ratio = self.rounds(), self.ratio()
        return PairRecord(
            number=self.number,
            base_step_seconds=fmean(base for base, _ in rounds),
            head_step_seconds=fmean(head for _, head in rounds),
            log_ratio=ratio.log,
            windows=2 * len(rounds),
            log_error=None if ratio.own is None else ratio.own.error,
        )


@dataclass(frozen=True)
class Series:
    """One metric over the pairs: its values on both sides, and one difference a pair.

    `owns`: how far off each difference may be by the windows of its pair alone, where that is known.
    """

    id: str
    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    owns: list[decide.Own | None] = field(default_factory=list)

    @property
    def unit(self) -> Unit:
        return KINDS[self.id].unit

    def known(self) -> decide.Estimate:
        """What the differences say; there are two at least."""
        return decide.estimate(self.differences, self.owns)

    def weighted(self) -> decide.Estimate:
        """What calm pairs say more than restless ones."""
        return decide.weighed(self.differences, self.owns)

    def means(self, *, weighted: bool = False) -> tuple[float | None, float | None]:
        """Of both sides, by the weights of the differences if `weighted`; None of a side that has no values."""
        heavy = decide.weights(self.owns) if weighted else []
        base, head = (decide.weighted_mean(values, heavy) if values else None for values in (self.base, self.head))
        return base, head

    def smallest(self, threshold: float, how: Judging) -> float | None:
        """The smallest difference that would have been called a regression, as `decide.smallest` has it."""
        return decide.smallest(
            self.weighted(), threshold, how.most_pairs, fixed=how.fixed, error_rate=how.rate(self.id)
        )


def series(pairs: Sequence[PairSample]) -> list[Series]:
    """Every metric that either side has, and those that every check has."""
    return [
        _step_time(pairs),
        _shares(pairs),
        _ratios(HOST_MEMORY, [(pair.base.peak_bytes, pair.head.peak_bytes) for pair in pairs]),
        _ratios(DEVICE_MEMORY, [(pair.base.device_bytes, pair.head.device_bytes) for pair in pairs]),
        _ratios(
            DEVICE_RESERVED, [(pair.base.device_reserved_bytes, pair.head.device_reserved_bytes) for pair in pairs]
        ),
        # The first two processes may have had caches to make for all that follow.
        _ratios(FIRST_STEP, [(pair.base.first_step, pair.head.first_step) for pair in pairs if pair.number > 1]),
        _ratios(EPOCH_TURN, [(pair.base.turn(), pair.head.turn()) for pair in pairs], LEAST_TURN),
        *_phases(pairs),
    ]


def _step_time(pairs: Sequence[PairSample]) -> Series:
    made = Series(STEP_TIME)
    for pair in pairs:
        rounds, seen = pair.rounds(), pair.ratio()
        made.base.append(fmean(base for base, _ in rounds))
        made.head.append(fmean(head for _, head in rounds))
        made.differences.append(seen.log)
        made.owns.append(seen.own)
    return made


def _shares(pairs: Sequence[PairSample]) -> Series:
    made = Series(DATA_WAIT)
    for pair in pairs:
        base, head = pair.base.wait_share(), pair.head.wait_share()
        _put(made, base, head, None if base is None or head is None else head - base)
    return made


def _ratios(name: str, values: Sequence[tuple[float | None, float | None]], least: float = _MICROSECOND) -> Series:
    """Values below `least` count as that much."""
    made = Series(name)
    for base, head in values:
        known = None if base is None or head is None else math.log(max(head, least) / max(base, least))
        _put(made, base, head, known)
    return made


def _put(made: Series, base: float | None, head: float | None, difference: float | None) -> None:
    for values, value in ((made.base, base), (made.head, head), (made.differences, difference)):
        if value is not None:
            values.append(value)


def _phases(pairs: Sequence[PairSample]) -> list[Series]:
    """Phases that are a noticeable part of a step on either side."""
    both = [seen for pair in pairs if (seen := pair.phases()) is not None]
    found = []
    for name in KINDS:
        if not name.startswith(PHASE):
            continue
        phase = name.removeprefix(PHASE)
        values = [(base.get(phase, 0.0), head.get(phase, 0.0)) for base, head in both]
        sums = [(sum(base.values()), sum(head.values())) for base, head in both]
        shares = [sum(value[side] for value in values) / max(_MICROSECOND, sum(total[side] for total in sums))
                  for side in (0, 1)]  # fmt: skip
        if not values or max(shares) < LEAST_PHASE:
            continue
        # A phase that never took any time on one side is not there.
        there = [any(value[side] > 0 for value in values) for side in (0, 1)]
        found.append(_ratios(name, [(b if there[0] else None, h if there[1] else None) for b, h in values]))
    return found


# -- verdicts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judging:
    """How it is judged. `look`: None before the first. `most_pairs`: for how many there is room. `fixed`: their number
    was set. Metrics that can fail the check share the promised error rate."""

    limits: Mapping[str, Limit]
    look: decide.Look | None
    most_pairs: int
    fixed: bool = False

    @property
    def alarms(self) -> int:
        return sum(limit.level == "error" for limit in self.limits.values())

    def rate(self, name: str) -> float:
        """The error rate of one metric."""
        return decide.ERROR_RATE / (self.alarms if self.limits[name].level == "error" else 1)


def judged(pairs: Sequence[PairSample], how: Judging) -> list[Metric]:
    """A verdict on every metric that is not switched off."""
    return judged_series(series(pairs), how)


def judged_series(found: Iterable[Series], how: Judging) -> list[Metric]:
    """The same of metrics whose differences are known."""
    return [_judged(each, how) for each in found if how.limits[each.id].level != "off"]


def _judged(seen: Series, how: Judging) -> Metric:
    limit, kind = how.limits[seen.id], KINDS[seen.id]
    base, head = seen.means()
    verdict: Verdict
    change = low = high = smallest = None
    if not seen.differences:
        verdict = "not_measured"
        if base is not None or head is not None:
            verdict = "gone" if head is None else "new" if base is None else "not_measured"
    elif len(seen.differences) < 2:
        verdict, change = "cannot_tell", told(seen.differences[0], seen.unit)
    else:
        known, weighted = seen.known(), seen.weighted()
        look = how.look or decide.Look(known.pairs, 1.0)
        threshold = scaled(limit.threshold, seen.unit)
        verdict = "cannot_tell"
        if how.look:
            known, verdict = decide.settle(known, weighted, threshold, look, how.rate(seen.id))
            base, head = seen.means(weighted=known is weighted)
        change = told(known.mean, seen.unit)
        low, high = (told(end, seen.unit) for end in decide.interval(known, look))
        least = seen.smallest(threshold, how)
        smallest = None if least is None else told(least, seen.unit)
    made = Metric(
        id=seen.id,
        title=kind.title,
        unit=kind.unit,
        base=base,
        head=head,
        change=change,
        low=low,
        high=high,
        threshold=limit.threshold,
        level=limit.level,
        verdict=verdict,
        smallest=smallest,
        sentence="",
    )
    made = replace(made, sentence=sentence(made))
    return _over_the_most(made, seen, how)


def _over_the_most(metric: Metric, seen: Series, how: Judging) -> Metric:
    """The metric as worse where the head has more than it may have at all, for certain."""
    most = how.limits[metric.id].most
    if most is None or how.look is None or len(seen.head) < decide.LEAST_PAIRS:
        return metric
    scale = 1.0 if metric.unit == "share" else most
    over = decide.estimate([(value - most) / scale for value in seen.head])
    if decide.decide(over, 0.0, how.look, how.rate(metric.id)) != "regression":
        return metric
    said = f"{metric.title}: {value_text(metric, metric.head)}; at most {value_text(metric, most)} is allowed."
    return replace(metric, verdict="regression", sentence=said)


def prospect_of(seen: Series, how: Judging) -> Prospect | None:
    """What all pairs that there is time for would show, the floor in the unit of thresholds; None where nothing."""
    if len(seen.differences) < 2:
        return None
    limit = how.limits[seen.id]
    found = prospect(
        *(seen.known(), scaled(limit.threshold, seen.unit), how.most_pairs),
        weighted=seen.weighted(),
        fixed=how.fixed,
        error_rate=how.rate(seen.id),
    )
    return None if found is None else replace(found, floor=told(found.floor, seen.unit))


def scaled(threshold: float, unit: Unit) -> float:
    """A threshold in the unit of differences."""
    return threshold if unit == "share" else math.log1p(threshold)


def told(difference: float, unit: Unit) -> float:
    """A difference as the document tells it."""
    return difference if unit == "share" else math.expm1(min(difference, 700.0))


def sentence(metric: Metric) -> str:
    """What is known of a metric, in a sentence."""
    name = metric.title
    if metric.verdict == "not_measured":
        return f"{name}: could not be measured on either side."
    if metric.verdict in ("gone", "new"):
        where = "base" if metric.verdict == "gone" else "head"
        return f"{name}: only the {where} has it."
    assert metric.change is not None
    figures = f"{value_text(metric, metric.base)} to {value_text(metric, metric.head)}"
    by = f"by {amount_text(metric.unit, abs(metric.change))}, from {figures}"
    limit = amount_text(metric.unit, metric.threshold)
    if metric.verdict == "regression":
        return f"{name}: grew {by}; the limit is {limit}."
    if metric.verdict == "improvement":
        return f"{name}: fell {by}."
    if metric.verdict == "unchanged":
        return f"{name}: has not grown by {limit} ({figures})."
    way = "grown" if metric.change > 0 else "fallen"
    return f"{name}: seems to have {way} {by}, but that may be luck."
