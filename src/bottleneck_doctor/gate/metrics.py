"""What the pairs show about each metric: windows, phases and memory of both sides in, one number a pair and a verdict
out.

Pure. The number is a difference inside a pair, whose processes ran side by side: the log of a ratio for seconds and
bytes, points for shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from bottleneck_doctor.documents.check import (
    DATA_WAIT,
    DEVICE_MEMORY,
    DEVICE_RESERVED,
    EPOCH_OVERHEAD,
    FIRST_STEP,
    HOST_MEMORY,
    LEAST_EPOCH_OVERHEAD,
    PHASE,
    STEP_TIME,
    Metric,
    PairRecord,
    Unit,
    Verdict,
)
from bottleneck_doctor.gate import decide, faster, parts
from bottleneck_doctor.gate.futility import Futility, chance_of_worse, futility
from bottleneck_doctor.gate.limits import KINDS, MetricLimit
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.statistics.spread import Spread
from bottleneck_doctor.wording.check_words import REVISIONS, SideWords, amount_text, value_text

LEAST_PHASE = 0.05
"""Part of a step below which a phase is too small to be a metric of its own."""
LEAST_PHASE_TOLD = 0.01
"""A phase that takes a smaller part of a step counts as this part, because there is no ratio to zero."""
_MICROSECOND = 1e-6
_LEAST: Mapping[Unit, float] = {"seconds": _MICROSECOND, "bytes": 1 << 20, "share": 0.0}
"""Smaller values count as this, by unit."""


def least_of(name: str) -> float:
    """Smaller values of this metric count as this."""
    return LEAST_EPOCH_OVERHEAD if name == EPOCH_OVERHEAD else _LEAST[KINDS[name].unit]


@dataclass(frozen=True)
class Series:
    """One metric over the pairs: its values on both sides, and one difference a pair.

    `owns`: the error of each difference by the windows of its pair alone; None where it is not known. `lent`: how much
    differences varied in earlier checks.
    """

    id: str
    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    owns: list[decide.Own | None] = field(default_factory=list)
    lent: Spread | None = None

    @property
    def unit(self) -> Unit:
        return KINDS[self.id].unit

    def known(self) -> decide.GateEstimate:
        """The estimate in which all pairs weigh alike. Needs two differences."""
        return decide.estimate(self.differences, self.owns, lent=self.lent)

    def weighted(self) -> decide.GateEstimate:
        """The estimate in which pairs with even windows weigh more."""
        return decide.weighed(self.differences, self.owns, lent=self.lent)

    def means(self, *, weighted: bool = False) -> tuple[float | None, float | None]:
        """The means of both sides, with the weights of the differences if `weighted`; None for a side without
        values."""
        heavy = decide.weights(self.owns) if weighted else []
        base, head = (decide.weighted_mean(values, heavy) if values else None for values in (self.base, self.head))
        return base, head

    def smallest(self, threshold: float, how: Judging) -> float | None:
        """The smallest difference that would have been called a regression, or of an edit any difference, as
        `decide.smallest` has it."""
        if how.both_ways(self.id):
            return faster.smallest(
                self.known(), threshold, how.most_pairs, fixed=how.fixed, error_rate=how.rate(self.id)
            )
        return decide.smallest(
            self.weighted(), threshold, how.most_pairs, fixed=how.fixed, error_rate=how.rate(self.id)
        )


def judges_phases(limits: Mapping[str, MetricLimit]) -> bool:
    """Whether phases have to be timed in every pair, because somebody has set a limit for one. Otherwise they only help
    to explain, and get no verdict."""
    return any(
        limit != KINDS[name].limit and limit.level != "off" for name, limit in limits.items() if name.startswith(PHASE)
    )


def record_of(pair: PairSample) -> PairRecord:
    """The pair as it is written in the document."""
    (base, head), ratio = pair.means(), pair.ratio()
    return PairRecord(
        number=pair.number,
        base_step_seconds=base,
        head_step_seconds=head,
        log_ratio=ratio.log,
        windows=2 * len(pair.rounds()),
        log_error=None if ratio.own is None else ratio.own.error,
    )


def series(pairs: Sequence[PairSample], lent: Spread | None = None) -> list[Series]:
    """Every metric that either side has, and those that every check has. `lent`: how much step times of pairs differed
    in earlier checks."""
    return [
        _step_time(pairs, lent),
        _shares(pairs),
        _ratios(HOST_MEMORY, [(pair.base.peak_bytes, pair.head.peak_bytes) for pair in pairs]),
        _ratios(DEVICE_MEMORY, [(pair.base.device_bytes, pair.head.device_bytes) for pair in pairs]),
        _ratios(
            DEVICE_RESERVED, [(pair.base.device_reserved_bytes, pair.head.device_reserved_bytes) for pair in pairs]
        ),
        # The first two processes may have filled caches for all later ones.
        _ratios(FIRST_STEP, [(pair.base.first_step, pair.head.first_step) for pair in pairs if pair.number > 1]),
        _ratios(EPOCH_OVERHEAD, [(pair.base.epoch_overhead(), pair.head.epoch_overhead()) for pair in pairs]),
        *_phases(pairs),
    ]


def _step_time(pairs: Sequence[PairSample], lent: Spread | None) -> Series:
    made = Series(STEP_TIME, lent=lent)
    for pair in pairs:
        (base, head), seen = pair.means(), pair.ratio()
        made.base.append(base)
        made.head.append(head)
        made.differences.append(seen.log)
        made.owns.append(seen.own)
    return made


def _shares(pairs: Sequence[PairSample]) -> Series:
    made = Series(DATA_WAIT)
    for pair in pairs:
        base, head = pair.base.wait_share(), pair.head.wait_share()
        _put(made, base, head, None if base is None or head is None else head - base)
    return made


def _ratios(name: str, values: Sequence[tuple[float | None, float | None]], least: float | None = None) -> Series:
    """Values below `least` count as that much."""
    made = Series(name)
    least = least_of(name) if least is None else least
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
    both: list[tuple[Mapping[str, float] | None, Mapping[str, float] | None]]
    both = [seen for pair in pairs if (seen := pair.phases()) is not None]
    # If one side never showed any, those of the other are gone, or new.
    both = both or [(pair.base.phases or None, pair.head.phases or None) for pair in pairs]
    sums = [tuple(None if each is None else sum(each.values()) for each in sides) for sides in both]
    steps = [_mean(each[number] for each in sums) for number in (0, 1)]
    found = []
    for name in KINDS:
        if not name.startswith(PHASE):
            continue
        phase = name.removeprefix(PHASE)
        # One that took no time is known to have taken none.
        values = [tuple(None if each is None else each.get(phase, 0.0) for each in sides) for sides in both]
        means = [_mean(value[number] for value in values) for number in (0, 1)]
        if max(mean / max(_MICROSECOND, step) for mean, step in zip(means, steps, strict=True)) < LEAST_PHASE:
            continue
        found.append(_ratios(name, [(base, head) for base, head in values], LEAST_PHASE_TOLD * (steps[0] or steps[1])))
    return found


def _mean(values: Iterable[float | None]) -> float:
    """The mean of those that are known, 0 of none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


# -- verdicts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judging:
    """The conditions of a judgement. `look`: None before the first one. `most_pairs`: the number that there is time
    for. `fixed`: whether the user set this number. `by_part`: whether a part of the step may also call it worse
    (`parts`). All tests that can fail the check share the promised error rate."""

    limits: Mapping[str, MetricLimit]
    look: decide.InterimLook | None
    most_pairs: int
    fixed: bool = False
    by_part: bool = False
    edit: bool = False
    sides: SideWords = REVISIONS
    among: int = 1
    """How many edits share the error rate, because the best of them is told."""
    lent: Spread | None = None
    """How much step times of pairs differed in earlier checks; None if nobody knows."""

    def both_ways(self, name: str) -> bool:
        """Whether a metric is judged in both directions."""
        return self.edit and name == STEP_TIME

    @property
    def alarms(self) -> int:
        """The number of tests that can fail the check."""
        return sum(_tests(limit) for limit in self.limits.values() if limit.level == "error")

    def rate(self, name: str) -> float:
        """The error rate of each test of a whole metric, without what a part of it may use."""
        if name != STEP_TIME or not self.by_part:
            return self.rate_with_part(name)
        pairs = decide.SURE_PAIRS if self.look is None else self.look.pairs
        return parts.rate_of_step(pairs) * self.rate_with_part(name)

    def rate_with_part(self, name: str) -> float:
        """The same, including what a part of the metric may use."""
        limit = self.limits[name]
        return decide.ERROR_RATE / self.among / (self.alarms if limit.level == "error" else _tests(limit))


def _tests(limit: MetricLimit) -> int:
    """How many tests may call a metric worse: one against the base, and one against an absolute limit if there is
    one."""
    return 1 if limit.most is None else 2


def judged(pairs: Sequence[PairSample], how: Judging) -> list[Metric]:
    """A verdict on every metric that is not switched off."""
    found, part = judged_series(series(pairs, how.lent), how), parts.data_part(pairs) if how.by_part else None
    return found if part is None else [by_part(each, part, how) if each.id == STEP_TIME else each for each in found]


def by_part(step: Metric, part: parts.DataPart, how: Judging) -> Metric:
    """The step time, called worse if it is undecided by itself and a part of it grew by more than a step may grow.

    The step's own estimate has to lie above the threshold too, because another part may have become faster by as much.
    """
    if step.verdict != "cannot_tell" or how.look is None or step.change is None or step.change <= step.threshold:
        return step
    worse = part.worse(step.threshold, how.look, how.rate_with_part(step.id))
    if worse is None:
        return step
    made = replace(step, verdict="regression", part=worse)
    return replace(made, sentence=sentence(made, how))


def judged_series(found: Iterable[Series], how: Judging) -> list[Metric]:
    """Verdicts on metrics whose differences are known already."""
    return [_judged(each, how) for each in found if how.limits[each.id].level != "off"]


def _judged(seen: Series, how: Judging) -> Metric:
    limit, kind = how.limits[seen.id], KINDS[seen.id]
    base, head = seen.means()
    verdict: Verdict
    change = low = high = smallest = None
    if not seen.differences:
        verdict = _lacking(seen, how)
    elif len(seen.differences) < 2:
        verdict, change = "cannot_tell", told(seen.differences[0], seen.unit)
    else:
        known, weighted = seen.known(), seen.weighted()
        look = how.look or decide.InterimLook(known.pairs, 1.0)
        threshold = scaled(limit.threshold, seen.unit)
        verdict = "cannot_tell"
        if how.look:
            settle = faster.settle if how.both_ways(seen.id) else decide.settle
            known, verdict = settle(known, weighted, threshold, look, how.rate(seen.id))
            base, head = seen.means(weighted=known is weighted)
        change = told(known.mean, seen.unit)
        low, high = (told(end, seen.unit) for end in decide.interval(known, look))
        least = seen.smallest(threshold, how)
        smallest = None if least is None else told(least, seen.unit)
    made = Metric(
        id=seen.id,
        title=kind.title,
        unit=kind.unit,
        # The overhead of an epoch is a difference, so its mean may be below 0 by chance.
        base=None if base is None else max(0.0, base),
        head=None if head is None else max(0.0, head),
        change=change,
        low=low,
        high=high,
        threshold=limit.threshold,
        level=limit.level,
        verdict=verdict,
        smallest=smallest,
        sentence="",
    )
    made = replace(made, sentence=sentence(made, how))
    return _over_the_most(made, seen, how)


def _lacking(seen: Series, how: Judging) -> Verdict:
    """The verdict on a metric that no pair has on both sides."""
    if bool(seen.base) == bool(seen.head):
        return "not_measured"
    if how.look is None or len(seen.base or seen.head) < decide.LEAST_PAIRS:
        return "cannot_tell"
    return "gone" if seen.base else "new"


def _over_the_most(metric: Metric, seen: Series, how: Judging) -> Metric:
    """The metric, called worse if the head certainly exceeds the absolute limit, and undecided if it perhaps does."""
    most = how.limits[metric.id].most
    if most is None or how.look is None or len(seen.head) < decide.LEAST_PAIRS:
        return metric
    scale = 1.0 if metric.unit == "share" else most
    over = decide.estimate([(value - most) / scale for value in seen.head])
    answer = decide.decide(over, 0.0, how.look, how.rate(metric.id))
    has, allowed = value_text(metric, fmean(seen.head)), value_text(metric, most)
    if answer == "regression":
        return replace(metric, verdict="regression", sentence=f"{metric.title}: {has}; at most {allowed} is allowed.")
    if metric.verdict == "regression":
        return metric
    if answer == "cannot_tell":
        said = f"{metric.title}: {has}; cannot tell whether that exceeds the limit of {allowed}."
        return replace(metric, verdict="cannot_tell", sentence=said)
    return replace(metric, sentence=f"{metric.sentence} At most {allowed} is allowed.")


def futility_of(seen: Series, how: Judging, part: parts.DataPart | None = None) -> Futility | None:
    """What all pairs that there is time for would show, with the floor in the unit of thresholds; None if nothing.

    `part`: the part of the metric that may decide in its place.
    """
    if len(seen.differences) < 2:
        return None
    limit = how.limits[seen.id]
    found = (faster.futility if how.both_ways(seen.id) else futility)(
        *(seen.known(), scaled(limit.threshold, seen.unit), how.most_pairs),
        weighted=seen.weighted(),
        fixed=how.fixed,
        error_rate=how.rate(seen.id),
    )
    if found is None:
        return None
    if part is not None and seen.known().mean > scaled(limit.threshold, seen.unit):
        rate = parts.PART_RATE * how.rate_with_part(seen.id)
        by_it = chance_of_worse(part.weighted(), limit.threshold, how.most_pairs, rate)
        found = replace(found, chance=max(found.chance, by_it))
    return replace(found, floor=told(found.floor, seen.unit))


def scaled(threshold: float, unit: Unit) -> float:
    """A threshold in the unit of differences."""
    return threshold if unit == "share" else math.log1p(threshold)


def told(difference: float, unit: Unit) -> float:
    """A difference as it is written in the document."""
    return difference if unit == "share" else math.expm1(min(difference, 700.0))


def sentence(metric: Metric, how: Judging) -> str:
    """What is known of a metric, in a sentence."""
    name, sides = metric.title, how.sides
    if metric.verdict == "not_measured":
        return f"{name}: could not be measured on either side."
    if metric.verdict in ("gone", "new"):
        where = sides.base if metric.verdict == "gone" else sides.head
        return f"{name}: it was measured on {where} only."
    if metric.change is None:
        where = sides.base if metric.head is None else sides.head
        return f"{name}: it was measured on {where} only, which may be chance."
    before, after = value_text(metric, metric.base), value_text(metric, metric.head)
    figures = f"{before} to {after}"
    by = f"by {amount_text(metric.unit, abs(metric.change))}"
    # The change is a mean over pairs. The means of the two sides may differ by less, and for uneven pairs even in the
    # opposite direction.
    if before != after and ((metric.head or 0.0) > (metric.base or 0.0)) == (metric.change > 0):
        by += f", from {figures}"
    limit = amount_text(metric.unit, metric.threshold)
    if metric.part is not None:
        part = metric.part
        return (
            f"{name}: {part.title.lower()} alone grew by {amount_text(metric.unit, part.change)} of a step, from "
            f"{value_text(metric, part.base)} to {value_text(metric, part.head)}; the limit is {limit}. The whole step "
            f"seems to have grown {by}, but that alone may be chance."
        )
    if metric.verdict == "regression":
        return f"{name}: grew {by}." if how.both_ways(metric.id) else f"{name}: grew {by}; the limit is {limit}."
    if metric.verdict == "improvement":
        return f"{name}: fell {by}."
    if metric.verdict == "unchanged" and how.both_ways(metric.id):
        return f"{name}: differs by less than {limit} ({figures})."
    if metric.verdict == "unchanged":
        return f"{name}: has not grown by {limit} or more (base {before}, head {after})."
    way = "grown" if metric.change > 0 else "fallen"
    return f"{name}: seems to have {way} {by}, but that may be chance."
