"""Two sides whose windows took turns: windows in; what a step costs on each, and one ratio for each pair, out. Pure.

The cost of a step is what the user pays for it. If the loop takes samples, a step is the same number of samples on both
sides. The starts and ends of epochs are part of the cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.statistics import neighbours
from bottleneck_doctor.statistics.spread import variance

LEAST_ROUNDS = 2
"""Rounds that a pair needs at least to count: from one, nobody knows how far off it is."""

LEAST_USUAL = 4
"""Windows of other pairs without which nobody knows which load is usual: two of each side."""


@dataclass(frozen=True)
class Own:
    """How far off a pair's number may be because of its windows alone: a standard error and its degrees of freedom."""

    error: float
    degrees: int


@dataclass(frozen=True, kw_only=True)
class SideSample:
    """What one process of a pair showed. `windows`: of the training as written; their block is the round.

    `first_step`: seconds from the process's start. `phases`: seconds of each phase in a step; None if they could not be
    seen. `loads_itself`: the process makes its batches itself, without workers.
    """

    windows: list[Window]
    has_loader: bool
    epoch_batches: int | None
    of_closure: bool = False
    """Whether a step is one call of an optimizer's closure."""
    first_step: float | None = None
    peak_bytes: int | None = None
    device_bytes: int | None = None
    device_reserved_bytes: int | None = None
    phases: Mapping[str, float] | None = None
    loads_itself: bool = False
    losses: Mapping[int, float] = field(default_factory=dict)
    """By the number of optimizer steps that the process had made before; empty where none were told."""

    def per_step(self) -> float:
        """Mean samples a step."""
        return ev.samples_per_step(self.windows)

    def epoch_overhead(self) -> float | None:
        """Seconds that an epoch's start and end cost, 0 or more; None if whole epochs were timed or none was seen."""
        seen = [window.turn_seconds for window in self.windows if ev.usable(window) and not window.whole_epochs]
        known = [each for each in seen if each is not None]
        # A window's overhead is what its lead-in took beyond its steps, so a tiny one may come out below 0 by chance.
        # Only the mean is cut off at 0: before that, random differences in both directions have to cancel.
        return max(0.0, fmean(known)) if known else None

    def collecting(self) -> float | None:
        """Seconds that Python's garbage collector runs between two epochs; None if no window showed it."""
        return ev.collecting_a_turn(self.windows)

    @property
    def knows_epoch_overhead(self) -> bool:
        """Whether it is known what an epoch's start and end add to a step."""
        return bool(self.epoch_overhead() is not None and self.epoch_batches)

    def costs(self, per_step: float | None, *, overhead: bool = True, collecting: bool = False) -> dict[int, float]:
        """Seconds that a step of the user's loop takes, by round. `overhead`: include the starts and ends of epochs, if
        they are known. `collecting`: and the garbage collector's time between epochs.

        `per_step`: how many samples a step holds; None: as many as this side's own steps.
        """
        own = self.per_step()
        size = own if per_step is None else per_step
        usable = [window for window in self.windows if ev.usable(window)]
        steps = {window.block: ev.step_cost(window, size) for window in usable}
        seconds = (self.epoch_overhead() or 0.0) if overhead else 0.0
        seconds += (self.collecting() or 0.0) if collecting else 0.0
        if not self.epoch_batches or not steps:
            return steps
        share = seconds / self.epoch_batches * size / own
        return {number: cost + share for number, cost in steps.items()}

    def samples(self) -> dict[int, float]:
        """How many samples each round's window took."""
        return {window.block: window.samples for window in self.windows if ev.usable(window)}

    def loads(self) -> dict[int, float | None]:
        """How much other programs loaded the machine meanwhile, by round; None where that was not seen."""
        return loads_by_round(self.windows)

    def waits(self, per_step: float) -> dict[int, float]:
        """Seconds that a step of `per_step` samples waits for its batch, by round."""
        usable = [window for window in self.windows if ev.usable(window)]
        return {window.block: window.wait_seconds * per_step / window.samples for window in usable}

    def wait_share(self) -> float | None:
        """Part of the time that was spent waiting for the next batch; None if no loader feeds the loop."""
        usable = [window for window in self.windows if ev.usable(window)]
        seconds = sum(window.seconds for window in usable)
        if not self.has_loader or seconds <= 0:
            return None
        return min(1.0, sum(window.wait_seconds for window in usable) / seconds)


def loads_by_round(windows: Iterable[Window]) -> dict[int, float | None]:
    """How much other programs loaded the machine during windows that count, by round; None where that was not seen."""
    return {window.block: ev.load_beside(window) for window in windows if ev.usable(window)}


def calm_rounds(
    base: Mapping[int, float | None], head: Mapping[int, float | None], usual: Sequence[float]
) -> list[int]:
    """The rounds in which both sides have a window that no passing neighbour disturbed, by their loads. `usual`: those
    of other pairs: within one, nobody could tell a burst that lasts for all of it from a neighbour that stays. The load
    alone decides, never how fast a window was."""
    most = neighbours.most_calm(usual if len(usual) >= LEAST_USUAL else (*base.values(), *head.values()))
    both = sorted(base.keys() & head.keys())
    return [each for each in both if neighbours.is_calm(base[each], most) and neighbours.is_calm(head[each], most)]


@dataclass(frozen=True)
class Ratio:
    """The log of a ratio, and how far off it may be because of its pair's rounds alone; None if there was only one."""

    log: float
    own: Own | None


@dataclass(frozen=True)
class Waits:
    """Seconds that a step waited for data on each side. `share`: by which part of the base's step the head waited
    longer. `own`: how far off that may be because of the rounds alone; None if there was only one."""

    base: float
    head: float
    share: float
    own: Own | None


@dataclass(frozen=True, kw_only=True)
class PairSample:
    """A pair of processes, one of each side."""

    number: int
    base: SideSample
    head: SideSample
    usual: Sequence[float] = ()
    """How much other programs loaded the machine during the windows of pairs before."""

    @property
    def one_side_knows_overhead(self) -> bool:
        """Whether the cost of an epoch's start and end is known for one side only."""
        return self.base.knows_epoch_overhead != self.head.knows_epoch_overhead

    def rounds(self) -> list[tuple[float, float]]:
        """Seconds that a step cost on the base and on the head in each round. If both loops take samples, both steps
        have the size of the base's. The starts and ends of epochs are included, and the garbage collector's time
        between them, unless they are known for one side only."""
        costs = self._costs()
        return [(costs[0][number], costs[1][number]) for number in self._numbers()]

    def _costs(self) -> tuple[dict[int, float], dict[int, float]]:
        per_step = self.base.per_step() if self.base.has_loader and self.head.has_loader else None
        both = not self.one_side_knows_overhead
        collecting = all(side.collecting() is not None and side.epoch_batches for side in (self.base, self.head))
        return (
            self.base.costs(per_step, overhead=both, collecting=collecting),
            self.head.costs(per_step, overhead=both, collecting=collecting),
        )

    def _numbers(self) -> list[int]:
        """The rounds in which both sides have a window, without those that a passing neighbour disturbed, if enough are
        left."""
        base, head = self.base.loads(), self.head.loads()
        calm = calm_rounds(base, head, self.usual)
        return calm if len(calm) >= LEAST_ROUNDS else sorted(base.keys() & head.keys())

    def phases(self) -> tuple[Mapping[str, float], Mapping[str, float]] | None:
        """Seconds of each phase of a step on the base and on the head, for steps of the same size as in `rounds`; None
        if the phases of a side could not be seen."""
        base, head = self.base.phases, self.head.phases
        if not base or not head:
            return None
        size = 1.0
        if self.base.has_loader and self.head.has_loader:
            size = self.base.per_step() / self.head.per_step()
        return base, {name: seconds * size for name, seconds in head.items()}

    def means(self) -> tuple[float, float]:
        """A step's mean cost on both sides over all samples of the rounds, so that a window cut short weighs less."""
        rounds, (base, head) = self.rounds(), self._parts()
        return (
            sum(part * cost for part, (cost, _) in zip(base, rounds, strict=True)),
            sum(part * cost for part, (_, cost) in zip(head, rounds, strict=True)),
        )

    def _parts(self) -> tuple[list[float], list[float]]:
        """Each round's part of all samples, for both sides."""
        numbers = self._numbers()
        made = []
        for samples in (self.base.samples(), self.head.samples()):
            total = sum(samples[number] for number in numbers)
            made.append([samples[number] / total for number in numbers])
        return made[0], made[1]

    def waits(self) -> Waits:
        """How long a step of the base's size waited for data on both sides."""
        per_step, numbers, parts = self.base.per_step(), self._numbers(), self._parts()
        step = self.means()[0]
        rounds = [(self.base.waits(per_step)[each], self.head.waits(per_step)[each]) for each in numbers]
        base, head = (sum(part * each[side] for part, each in zip(parts[side], rounds, strict=True)) for side in (0, 1))
        off = [
            own_part * (own - head) - part * (other - base)
            for part, own_part, (other, own) in zip(*parts, rounds, strict=True)
        ]
        error = None
        if len(off) > 1:
            error = Own(math.sqrt(variance(off, 0.0) * len(off)) / step, len(off) - 1)
        return Waits(base, head, (head - base) / step, error)

    def ratio(self) -> Ratio:
        """Head over base of a step's mean cost."""
        base, head = self.means()
        # A ratio of sums, not a mean of ratios: so an occasional stall weighs as much in short windows as in long ones.
        known = head / base
        off = [
            own_part * own - known * part * other
            for part, own_part, (other, own) in zip(*self._parts(), self.rounds(), strict=True)
        ]
        own = None
        if len(off) > 1:
            own = Own(math.sqrt(variance(off, 0.0) * len(off)) / head, len(off) - 1)
        return Ratio(math.log(known), own)
