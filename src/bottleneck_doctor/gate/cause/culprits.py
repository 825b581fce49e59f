"""What takes longer: phases, functions and lines of both sides in; those that explain a regression out, largest growth
first. Pure.

`reasons` decides which of them is the reason.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from bottleneck_doctor.documents.check import Culprit
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.gate.cause.hunks import Differences
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.wording import words

LEAST_PART = 0.15
"""A culprit explains at least this part of a step's growth."""
SIGMAS = 2.5
"""A function must have grown by this many standard deviations of its sampling error."""
SAMPLED_95 = 1.96
"""Standard deviations of the sampling error on each side of a 95 % interval."""
MOST = 3
"""At most this many culprits of each kind are kept."""
LEAST_TOLD = 1e-6
"""Seconds a step; less counts as nothing."""

Place = tuple[str, str, int]
"""File from the repository's root, function, line."""


@dataclass(frozen=True)
class Table:
    """Seconds a step by place, as a sampling profile saw them.

    `grain`: seconds a step that one sample stands for. `step`: what a step takes.
    """

    seconds: Mapping[Place, float]
    grain: float
    step: float

    def luck(self, seconds: float) -> float:
        """The standard deviation of the sampled time of a place that takes `seconds`: each sample hits it or misses
        it."""
        rest = max(0.0, 1 - seconds / self.step)
        return math.sqrt(self.grain * max(seconds, 0.0) * rest)


def grown_phases(pairs: Sequence[PairSample], grew: float) -> list[Culprit]:
    """Phases that explain a step's growth of `grew` seconds."""
    seen = [phases for pair in pairs if (phases := pair.phases()) is not None]
    base, head = (
        {name: fmean(each[side].get(name, 0.0) for each in seen) if seen else 0.0 for name in words.PHASE_WORDS}
        for side in (0, 1)
    )
    return grown(base, head, grew)


def grown(base: Mapping[str, float], head: Mapping[str, float], grew: float) -> list[Culprit]:
    """The same for phases given by name, in seconds a step."""
    found = []
    for name, title in words.PHASE_WORDS.items():
        before, after = base.get(name, 0.0), head.get(name, 0.0)
        if after - before >= max(LEAST_PART * grew, 1e-9):
            said = sentence(title, before, after)
            found.append(Culprit(kind="phase", name=name, base=before, head=after, sentence=said))
    return _largest(found)[:MOST]


def grown_functions(base: Table, head: Table, grew: float, differences: Differences) -> list[Culprit]:
    """The user's functions that explain the growth, the largest first. Each has the line of it that grew most; if one
    of its changed lines matters, it is the changed line that grew most."""
    totals: list[defaultdict[tuple[str, str], float]] = [defaultdict(float), defaultdict(float)]
    for (path, function, _), seconds in base.seconds.items():
        totals[0][differences.renamed.get(path, path), function] += seconds
    for (path, function, _), seconds in head.seconds.items():
        totals[1][path, function] += seconds
    lines = line_growth(base, head, differences)
    found = []
    for key, after in totals[1].items():
        before = totals[0].get(key, 0.0)
        if not matters(before, after, grew, base, head):
            continue
        path, function = key
        own = {place: grown for place, grown in lines.items() if place[:2] == key}
        changed = {
            place: grown
            for place, grown in own.items()
            if differences.changed(path, place[2])
            and matters(head.seconds[place] - grown, head.seconds[place], grew, base, head)
        }
        line = _most(changed or own)[2]
        found.append(
            Culprit(
                kind="function",
                name=function,
                base=before,
                head=after,
                sentence=sentence(f"`{function}` in `{path}`", before, after),
                site=Site(file=path, line=line),
                changed_here=differences.changed(path, line),
            )
        )
    return _largest(found)


def grown_lines(base: Table, head: Table, grew: float, differences: Differences) -> list[Culprit]:
    """The user's lines that explain the growth, the largest first. A line of the base is followed to its place on the
    head."""
    found = []
    for place, grown in line_growth(base, head, differences).items():
        after = head.seconds[place]
        before = max(0.0, after - grown)
        if not matters(before, after, grew, base, head):
            continue
        path, _, line = place
        found.append(
            Culprit(
                kind="line",
                name=f"{path}:{line}",
                base=before,
                head=after,
                sentence=sentence(f"`{path}`, {words.line_text(path, line)},", before, after),
                site=Site(file=path, line=line),
                changed_here=differences.changed(path, line),
            )
        )
    return _largest(found)


def line_growth(base: Table, head: Table, differences: Differences) -> dict[Place, float]:
    """Seconds by which each line of the head grew."""
    before: defaultdict[tuple[str, int], float] = defaultdict(float)
    for (path, _, line), seconds in base.seconds.items():
        there = differences.on_head(path, line)
        if there is not None:
            before[there] += seconds
    return {place: seconds - before.get((place[0], place[2]), 0.0) for place, seconds in head.seconds.items()}


def matters(before: float, after: float, grew: float, base: Table, head: Table) -> bool:
    """Whether a growth explains enough of the step's growth, and is more than sampling error."""
    luck = math.hypot(base.luck(before), head.luck(after))
    return after - before >= max(LEAST_PART * grew, SIGMAS * luck)


def with_interval(found: Culprit, base: Table, head: Table) -> Culprit:
    """The culprit with the 95 % interval of its growth by sampling error alone. Without an interval: a phase, because
    it is not sampled, and workers that are busy for longer than a step, because their sampling error is not known."""
    grew, luck = found.head - found.base, math.hypot(base.luck(found.base), head.luck(found.head))
    if found.kind == "phase" or not luck:
        return found
    return replace(found, low=grew - SAMPLED_95 * luck, high=grew + SAMPLED_95 * luck)


def _most(grown: Mapping[Place, float]) -> Place:
    return max(grown, key=lambda place: (grown[place], place))


def _largest(found: list[Culprit]) -> list[Culprit]:
    return sorted(found, key=lambda each: (each.base - each.head, each.name))


def sentence(what: str, base: float, head: float) -> str:
    """A sentence about how long something took before and takes now. `what`: its subject."""
    before = words.duration_text(base) if base >= LEAST_TOLD else "nothing"
    return f"{what} takes {words.duration_text(head)} a step, {before} before."
