"""The result of a check as a whole: verdicts on metrics in; the status, a sentence, and warnings about weak evidence
out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from bottleneck_doctor.documents.check import PHASE, STEP_TIME, Culprit, Metric, Status
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.gate import faster, plan
from bottleneck_doctor.gate import metrics as figures
from bottleneck_doctor.gate.decide import LEAST_PAIRS
from bottleneck_doctor.gate.futility import Futility
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.gate.parts import data_part
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import SideWords, amount_text, change_text, fails

LONG = 1.25
"""A window that takes this many times the typical time of its process was held up."""
RARE = 0.02
"""If only the head's windows were held up, this is the largest probability with which that still counts as chance."""
NEARLY = 2 / 3
"""What grew by at least this part of the largest growth counts as having grown most. A few seconds of samples show no
more, and callers include a little more than what they call."""
MOST_USEFUL = 0.5
"""Larger thresholds are not suggested, because nobody would want one."""
QUIETER = "Run the check on a machine where nothing else runs"

UNTOLD = ("cannot_tell", "not_measured")
"""Verdicts that leave a metric undecided."""


def deciding(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that a check has to decide: those that can fail it, or the step time if none can."""
    alarms = [metric for metric in metrics if metric.level == "error"]
    return alarms or [metric for metric in metrics if metric.id == STEP_TIME]


def is_open(metrics: Sequence[Metric], how: Judging) -> bool:
    """Whether more pairs could still change the result. Nothing is decided before the first look."""
    if how.look is None or any(metric.verdict == "cannot_tell" for metric in deciding(metrics)):
        return True
    return any(how.both_ways(metric.id) and not _known_well(metric) for metric in metrics)


def _known_well(metric: Metric) -> bool:
    if metric.verdict not in ("regression", "improvement"):
        return True
    ends = (metric.change, metric.low, metric.high)
    known = [math.log1p(end) for end in ends if end is not None and end > -1]
    return len(known) < len(ends) or faster.known_well(*known)


def status(metrics: Sequence[Metric]) -> Status:
    """The status of the whole check. A metric that can fail it and could not be measured has not passed."""
    if any(fails(metric) for metric in metrics):
        return "regressed"
    untold = any(metric.verdict in UNTOLD for metric in deciding(metrics))
    return "cannot_tell" if untold else "passed"


def growth(metrics: Sequence[Metric]) -> float | None:
    """Seconds by which a step grew, by the estimate that the verdict rests on: that of the step if it regressed, else
    that of the phases that did. None if nothing grew that profiling a step can explain."""
    grown = {
        metric.id: metric.head - metric.base
        for metric in metrics
        if metric.verdict == "regression" and metric.base is not None and metric.head is not None
    }
    for metric in metrics:
        if metric.part is not None:
            return metric.part.head - metric.part.base
    phases = [seconds for name, seconds in grown.items() if name.startswith(PHASE)]
    if STEP_TIME in grown:
        return grown[STEP_TIME]
    return sum(phases) if phases else None


def seeming_growth(metrics: Sequence[Metric]) -> float | None:
    """Seconds by which a step seems to have grown if the check can't tell; None if it does not seem to have grown."""
    step = next((metric for metric in deciding(metrics) if metric.id == STEP_TIME), None)
    if step is None or step.verdict != "cannot_tell" or step.base is None or step.head is None:
        return None
    return step.head - step.base if step.head > step.base and (step.change or 0.0) > 0 else None


def learnt(suspects: Sequence[Culprit]) -> str:
    """A sentence about the changed code that grew most, if it is not known yet whether the step did; "" if there is
    none."""
    if not suspects:
        return ""
    most = suspects[0]
    by = ""
    if most.low is not None and most.high is not None:
        ends = [words.duration_text(max(0.0, each)) for each in (most.low, most.high)]
        by = f" In the last pair, it grew by {ends[0]} to {ends[1]}."
    return f"Not sure yet, but of the code that the changes touch, this grew most: {most.sentence}{by}"


def sentence(
    metrics: Sequence[Metric], base: str, pairs: int, culprits: Sequence[Culprit], *, counted: str | None = None
) -> str:
    """The outcome in a sentence or two, with figures. `base`: the base's name. `counted`: what was measured, in words,
    if it was not pairs."""
    counted = counted or f"{words.count_text(pairs, 'pair')} of processes"
    failed = [metric for metric in metrics if fails(metric)]
    step = next((metric for metric in metrics if metric.id == STEP_TIME), None)
    others = [metric for metric in failed if metric.id != STEP_TIME]
    said = []
    if step is not None and (step in failed or not failed):
        said.append(_of_steps(step, base, counted))
    said += [metric.sentence for metric in others]
    if not failed:
        # What is undecided; and if the step time is not judged, what is decided too.
        told = [metric for metric in deciding(metrics) if metric.id != STEP_TIME]
        said += [metric.sentence for metric in told if metric.verdict in UNTOLD or step is None]
    if step in failed:
        said += what_grew(culprits)
    return " ".join(said) if said else "Nothing was compared: no metric has the level `error`."


def what_grew(culprits: Sequence[Culprit]) -> list[str]:
    """The first that is no phase, else the first phase. What was changed stands first, and something else may have
    grown more."""
    found = next((each for each in culprits if each.kind != "phase"), None)
    if found is None:
        return [f"What grew most: {words.PHASE_WORDS[each.name].lower()}." for each in culprits[:1]]
    most = max(each.head - each.base for each in culprits if each.kind != "phase")
    grew_most = found.head - found.base >= NEARLY * most
    first = "What grew most" if grew_most else "Of the code that the changes touch, this grew most"
    return [f"{first}: {found.sentence}"]


def _of_steps(step: Metric, base: str, counted: str) -> str:
    if step.change is None or step.base is None or step.head is None:
        return f"The step time could not be compared with {base}."
    times = _times(step.base, step.head, step.change)
    change, limit = words.share_text(abs(step.change)), words.share_text(step.threshold)
    if step.part is not None:
        part = step.part
        waits = _times(part.base, part.head, part.change)
        return (
            f"A step waits longer for data than on {base}, by {words.share_text(part.change)} of a step{waits}; the "
            f"limit is {limit}. The whole step seems to take {change} longer{times}, but that alone may be chance."
        )
    if step.verdict == "regression":
        return f"A step takes {change} longer than on {base}{times}; the limit is {limit}."
    if step.verdict == "improvement":
        return f"A step takes {change} less time than on {base}{times}."
    if step.verdict == "unchanged":
        before, after = words.duration_text(step.base), words.duration_text(step.head)
        return f"A step has not become slower than on {base} by {limit} or more: it takes {after}, and {before} there."
    way = "longer" if step.change > 0 else "less time"
    return (
        f"Cannot tell after {counted} whether a step has become more than {limit} slower than on {base}: it seems to "
        f"take {change} {way}{times}, but that may be chance."
    )


def _times(base: float, head: float, change: float) -> str:
    """Both means, to go behind the change; "" where they tell another story than the pairs, from which it comes."""
    before, after = words.duration_text(base), words.duration_text(head)
    return f" ({after} instead of {before})" if before != after and (head > base) == (change > 0) else ""


def futilities(
    pairs: Sequence[PairSample], how: Judging, metrics: Sequence[Metric]
) -> list[tuple[Metric, Futility | None]]:
    """For each undecided metric that the check has to decide: what more pairs would show."""
    by_name = {series.id: series for series in figures.series(pairs, how.lent)}
    part = data_part(pairs) if how.by_part else None
    return [
        (metric, figures.futility_of(by_name[metric.id], how, part if metric.id == STEP_TIME else None))
        for metric in deciding(metrics)
        if metric.verdict == "cannot_tell"
    ]


def futile(pairs: Sequence[PairSample], how: Judging, metrics: Sequence[Metric]) -> bool:
    """Whether the pairs that there is time for will bring no answer: all undecided thresholds are too small to be
    judged here.

    Asked only right after a look, so that all verdicts rest on that look, and stopping costs no error rate.
    """
    if how.fixed or how.look is None:
        return False
    found = futilities(pairs, how, metrics)
    # Whether an absolute limit is exceeded can still be decided, whatever the threshold.
    return bool(found) and all(
        known is not None and known.futile and how.limits[metric.id].most is None for metric, known in found
    )


def refusal(
    pairs: Sequence[PairSample], how: Judging, metrics: Sequence[Metric], pair_seconds: float, seen: str = ""
) -> str:
    """The text of a check that gave up: what could be judged here, and what would help; a few sentences for each
    metric.

    `seen`: what was found out about the step nevertheless (`learnt`).
    """
    said = []
    for metric, known in futilities(pairs, how, metrics):
        if known is None:
            continue
        amount = amount_text(metric.unit, metric.threshold)
        said.append(
            f"{metric.title}: a threshold of {amount} can't be judged here. One pair of processes differs from the "
            f"next so much that {least_judged(metric, known.floor)}. The check was given up after "
            f"{words.count_text(len(pairs), 'pair')}, at {change_text(metric)}. "
            f"{f'{seen} ' if seen and metric.id == STEP_TIME else ''}{way_out(metric, known, pair_seconds)}"
        )
    return " ".join(said)


def least_judged(metric: Metric, floor: float) -> str:
    """What can be judged at all, as part of a sentence."""
    if floor > MOST_USEFUL:
        return f"not even {amount_text(metric.unit, MOST_USEFUL)} can be judged in this time"
    least = amount_text(metric.unit, _rounded_up(floor))
    return f"the smallest threshold that can be judged in this time is {least}"


def way_out(metric: Metric, known: Futility, pair_seconds: float) -> str:
    """What would settle it, in a sentence or two."""
    more = "" if known.pairs is None else f"`--budget {plan.minutes_for(known.pairs, pair_seconds)}m`"
    if known.floor > MOST_USEFUL:
        return f"{QUIETER}, or give more time: {more}." if more else f"{QUIETER}; more time here would not help."
    floor = _rounded_up(known.floor)
    option = f"`--threshold {100 * floor:g}%`" if metric.id == STEP_TIME else "a larger one in the configuration"
    if not more:
        return f"Give {option}. More time would not help, but a quieter machine may."
    return f"Give {option}, or more time: {more}."


def _weaker(known: Futility) -> str:
    """What would help to judge a threshold, without figures."""
    way = QUIETER if known.floor > MOST_USEFUL else "Raise the threshold"
    return f"{way}{'' if known.pairs is None else ', or raise `--budget`'}."


def _rounded_up(share: float) -> float:
    """A floor, rounded up to a threshold that people would type."""
    step = 1000 if share < 0.02 else 100
    return math.ceil(share * step - 1e-9) / step


def weak_evidence(
    pairs: Sequence[PairSample], how: Judging, metrics: Sequence[Metric], minutes: int | None = None
) -> list[Warning]:
    """Warnings about what makes the verdicts weaker. `minutes`: what enough pairs would take; None if it was not the
    time that ended measuring."""
    found = []
    if len(pairs) < LEAST_PAIRS:
        claimed = any(metric.verdict in ("regression", "improvement") for metric in metrics)
        found.append(few_pairs(f"{words.count_text(len(pairs), 'pair')} of processes", minutes, claimed=claimed))
    for metric, known in futilities(pairs, how, metrics):
        # Of an edit the outcome itself says so.
        if known is not None and metric.threshold < known.floor and not how.both_ways(metric.id):
            found.append(
                Warning(
                    slug="threshold-below-noise",
                    sentence=f"{metric.title}: a threshold of {amount_text(metric.unit, metric.threshold)} can't be "
                    "judged here in this time. One pair of processes differs from the next so much that "
                    f"{least_judged(metric, known.floor)}. {_weaker(known)}",
                )
            )
    found += _other_loop(pairs, how.sides)
    found += _stalls(pairs, how.sides)
    found += _beside_others(pairs)
    return found


def few_pairs(counted: str, minutes: int | None, *, claimed: bool = False) -> Warning:
    """So few that nothing is claimed but what is very large. `counted`: how many there are of what. `minutes`: what
    enough of them would take; None if it was not the time that ended measuring. `claimed`: something is so large."""
    more = "" if minutes is None else f" Give more time: `--budget {minutes}m`."
    needed = f"{LEAST_PAIRS} are needed"
    so = f"and for anything smaller, {needed}" if claimed else f"and {needed}, so nothing is claimed"
    return Warning(slug="few-pairs", sentence=f"Only {counted} could be measured, {so}.{more}")


def _beside_others(pairs: Sequence[PairSample]) -> list[Warning]:
    """Where other programs kept cores busy in every pair. Both sides met them alike, but what fewer threads are worth
    beside them, and what more of them cost, need not be so without them."""
    busy = [_others_cpu(pair) for pair in pairs]
    known = [each for each in busy if each is not None]
    if len(known) < len(busy) or min(known, default=0.0) <= words.OTHER_LOAD:
        return []
    sentence = (
        f"Other programs kept at least {words.busy_cores(min(known))} busy in each pair of processes. Both sides ran "
        "beside them, but without them the difference may be another one."
    )
    return [Warning(slug="other-load", sentence=sentence)]


def _others_cpu(pair: PairSample) -> float | None:
    """Cores that other programs kept busy in the windows of a pair, on average; None where the system does not tell."""
    windows = [window for side in (pair.base, pair.head) for window in side.windows]
    told = [each.around.others_cpu for each in windows if each.around is not None]
    known = [each for each in told if each is not None]
    return fmean(known) if known else None


def _stalls(pairs: Sequence[PairSample], sides: SideWords) -> list[Warning]:
    """Where the head's windows are long now and then and the base's are not. A neighbour would have met both alike."""
    rounds = [pair.rounds() for pair in pairs]
    base, head = (sum(_long([each[side] for each in seen]) for seen in rounds) for side in (0, 1))
    if not base + head or _at_least(head, base + head) > RARE:
        return []
    windows = words.count_text(sum(map(len, rounds)), "window")
    return [
        Warning(
            slug="head-stalls",
            sentence=f"{head} of {windows} of {sides.head} took a quarter longer than is usual in their process, and "
            f"{base or 'none'} of those of {sides.base}: {sides.head} seems to stall now and then. Look at what it "
            "does every few seconds: saving, logging, collecting garbage.",
        )
    ]


def _long(costs: Sequence[float]) -> int:
    """The number of windows of one process that are far longer than its typical one."""
    return sum(cost > LONG * median(costs) for cost in costs)


def _at_least(hits: int, of: int) -> float:
    """The probability of at least `hits` out of `of`, if each has probability 1/2."""
    chance: float = sum(math.comb(of, number) for number in range(hits, of + 1)) / 2**of
    return chance


def _other_loop(pairs: Sequence[PairSample], sides: SideWords) -> list[Warning]:
    """Where the two loops are not of one kind, so that their steps are not of one size."""
    if not pairs:
        return []
    base, head = pairs[-1].base, pairs[-1].head
    if base.has_loader and head.has_loader and pairs[-1].one_side_knows_overhead:
        where = sides.base if base.knows_epoch_overhead else sides.head
        return [
            Warning(
                slug="loops-differ",
                sentence=f"What starting and ending an epoch costs is known for {where} only, so steps are "
                "compared without it.",
            )
        ]
    if base.has_loader != head.has_loader:
        where = sides.base if base.has_loader else sides.head
        return [
            Warning(
                slug="loops-differ",
                sentence=f"Only {where} takes batches from a DataLoader, so steps are compared, not samples.",
            )
        ]
    before, after = base.per_step(), head.per_step()
    if base.has_loader and abs(after / before - 1) > 0.02:
        return [
            Warning(
                slug="loops-differ",
                sentence=f"A step has {words.number_text(after)} samples {sides.on_head} and "
                f"{words.number_text(before)} {sides.on_base}, so the seconds of {sides.head} are given for as many "
                f"samples as a step of {sides.base} has.",
            )
        ]
    return []
