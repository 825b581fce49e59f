"""What grew: phases, functions and lines of both sides in; those that explain a regression out, largest first. Pure.

Which of them is the reason is for `reasons` to say.
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
"""Part of a step's growth that a culprit explains at least."""
SIGMAS = 2.5
"""How many times its own luck of sampling a function must have grown by."""
SAMPLED_95 = 1.96
"""As many times its luck of sampling, a growth may lie off on each side in 95 % of cases."""
MOST = 3
"""Culprits of each kind."""
LEAST_TOLD = 1e-6
"""Seconds a step below which something takes nothing."""

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
        """The standard deviation of what was seen of a place that takes so long: samples hit it or miss it."""
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
    """The same of phases in seconds a step, by name."""
    found = []
    for name, title in words.PHASE_WORDS.items():
        before, after = base.get(name, 0.0), head.get(name, 0.0)
        if after - before >= max(LEAST_PART * grew, 1e-9):
            said = sentence(title, before, after)
            found.append(Culprit(kind="phase", name=name, base=before, head=after, sentence=said))
    return _largest(found)[:MOST]


def grown_functions(base: Table, head: Table, grew: float, differences: Differences) -> list[Culprit]:
    """Functions of the user's own that explain the growth, the largest first, each with the line of it that grew most:
    of its changed lines, where one of them matters."""
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
    """Lines of the user's own that explain the growth, the largest first. A line of the base is followed to where it is
    on the head."""
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
                sentence=sentence(f"`{path}`, line {line},", before, after),
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
    """Whether a growth explains a part of a step's, and is no luck of sampling."""
    luck = math.hypot(base.luck(before), head.luck(after))
    return after - before >= max(LEAST_PART * grew, SIGMAS * luck)


def with_interval(found: Culprit, base: Table, head: Table) -> Culprit:
    """What samples saw grow, with the interval of 95 % of its growth by their luck alone. A phase is not sampled, and
    of workers that are busy for longer than a step the luck is not known."""
    grew, luck = found.head - found.base, math.hypot(base.luck(found.base), head.luck(found.head))
    if found.kind == "phase" or not luck:
        return found
    return replace(found, low=grew - SAMPLED_95 * luck, high=grew + SAMPLED_95 * luck)


def _most(grown: Mapping[Place, float]) -> Place:
    return max(grown, key=lambda place: (grown[place], place))


def _largest(found: list[Culprit]) -> list[Culprit]:
    return sorted(found, key=lambda each: (each.base - each.head, each.name))


def sentence(what: str, base: float, head: float) -> str:
    """What something took and takes. `what`: the subject."""
    before = words.duration_text(base) if base >= LEAST_TOLD else "nothing"
    return f"{what} takes {words.duration_text(head)} a step, {before} on the base."
