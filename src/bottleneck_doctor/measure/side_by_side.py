"""Measures processes that stand at their loops side by side: their windows are granted in turn.

All stand at a step's boundary, and only one trains at a time. So none takes anything from another, and drift of the
machine meets all of them. Their windows hold the same steps of the training where that can be had (`alignment`). A
single process is the case with one side.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.knobs import in_part
from bottleneck_doctor.measure import alignment, burn_in, schedule, steps_left
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Probe, WindowSize, probe
from bottleneck_doctor.measure.starter import Broken, Live
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.session.ending import Ending, SessionOver

WORKERS_SECONDS = 0.35
"""Seconds of a window that only serves to look at loader workers: enough for two looks (`memory.EVERY`)."""
MOST_TO_OUTLIVE = 10
"""Windows that a process gets to train beyond the step at which another one failed."""


@dataclass
class _Measured:
    """The prober of one process, and its windows that count."""

    prober: Prober
    windows: list[Window] = field(default_factory=list)


class SideBySide:
    """Measures `lives`, each under the setting of its side. `broken`: how the first process that ended did so; after
    that, nothing can be asked.

    `window_seconds`: what a window's timed part aims at. `brief`: whether a window may hold fewer steps if steps are
    long. `whole`: whether windows are whole epochs if they can be; None: whole epochs only if that suits all processes,
    because windows of all of them must hold the same. `known`: costs of the loops of sides, by name, for which it is
    known how batches come. `losses`: whether the probers keep the losses of the training. `keeps_workers`: whether
    workers go on from window to window, where all sides load in the same way. If the user set no budget, a window that
    was begun is awaited even after the budget's end: whether it counts must not depend on how fast it was.
    """

    def __init__(
        self,
        lives: Sequence[Live],
        budget: Budget,
        outside: Outside,
        *,
        window_seconds: float,
        whole: bool | None = None,
        brief: bool = False,
        known: Mapping[str, Costs] | None = None,
        losses: bool = False,
        keeps_workers: bool = False,
    ) -> None:
        self.lives = tuple(lives)
        self.broken: Broken | None = None
        self.outside = outside
        self._now = budget.now
        self._window_seconds = window_seconds
        seen = known or {}
        self._measured = {
            live.side.name: _Measured(_prober(live, budget, window_seconds, brief, outside, seen.get(live.side.name)))
            for live in lives
        }
        for live in lives:
            if whole is not None:
                self.prober(live).costs.epochs = whole and _can_be_whole(live)
            self.prober(live).keeps_losses = losses
            self.prober(live).keeps_workers = keeps_workers
        if whole is None:
            self.hold_the_same()
        self._shorten()

    def _shorten(self) -> None:
        """Let windows be short enough for the shortest life."""
        left = steps_left.least(*(live.steps_left for live in self.lives))
        longest = max(self._steps(live) for live in self.lives)
        shortest = steps_left.most_steps(left, longest, steps_left.PAIRED)
        for each in self._measured.values():
            each.prober.costs.most_steps = steps_left.least(shortest, each.prober.costs.most_steps)

    def live(self, name: str) -> Live:
        """The process of that side."""
        return next(live for live in self.lives if live.side.name == name)

    def prober(self, live: Live) -> Prober:
        """What asks that process for windows."""
        return self._measured[live.side.name].prober

    def windows(self, live: Live) -> list[Window]:
        """The windows of that process that count, in order. Their block is the number of their round."""
        return self._measured[live.side.name].windows

    @property
    def whole_epochs(self) -> bool:
        """Whether windows are whole epochs."""
        return all(each.prober.costs.epochs for each in self._measured.values())

    def hold_the_same(self) -> None:
        """Let windows be whole epochs only where that suits all processes."""
        suits = self.whole_epochs
        for each in self._measured.values():
            each.prober.costs.epochs = suits

    def cost_seconds(self) -> float:
        """About how many seconds a window takes with its lead-in on the slowest side; known before the first window."""
        return max(self._cost_seconds(live) for live in self.lives)

    def _cost_seconds(self, live: Live) -> float:
        costs, each = self.prober(live).costs, probe(BASELINE, live.side.setting)
        if costs.epochs:
            return max(self._window_seconds, costs.whole(each, costs.size(each, self._window_seconds)))
        return self._steps(live) * costs.expected_step({})

    def _steps(self, live: Live) -> int:
        """Steps of a window of that process with its lead-in, about."""
        costs = self.prober(live).costs
        return costs.usual_steps(replace(self._sizes(self.lives)[live.side.name], skipped=0))

    def _sizes(self, lives: Sequence[Live], *, first: bool = False) -> dict[str, WindowSize]:
        """The windows of a round, by side. They hold the same steps of the training if the loops are alike: then they
        hold the same batches, too, where the seeds of the program are fixed. Otherwise, or if a process stands alone,
        those of the `first` round begin at a step that differs from process to process."""
        probers = [self.prober(live) for live in lives]
        own = [
            prober.size(live.session, probe(BASELINE, live.side.setting), self._window_seconds)
            for live, prober in zip(lives, probers, strict=True)
        ]
        standing = [
            alignment.Standing(
                position=_begins(live) if prober.position is None else prober.position,
                size=size,
                step=prober.costs.expected_step({}),
                most_steps=prober.costs.most_steps,
            )
            for live, prober, size in zip(lives, probers, own, strict=True)
        ]
        loops = {_same_rows(live) for live in lives}
        made = alignment.aligned(standing, lives[0].loop.period) if len(loops) == 1 else None
        if made is None:
            made = [_begun_later(*each) for each in zip(lives, probers, own, strict=True)] if first else own
        return {live.side.name: size for live, size in zip(lives, made, strict=True)}

    def lived_for(self, rounds: int, *, least: int) -> int:
        """As many of these rounds as all of them live for, as far as that is known, but no fewer than `least`."""
        known = (steps_left.rounds(live.steps_left, live.trained, self._steps(live)) for live in self.lives)
        return max(least, steps_left.least(rounds, *known) or 0)

    def burn_in(self) -> None:
        """Run windows of each process that are thrown away, until its speed no longer changes, or enough of them. There
        are none where steps are long: what is left to warm up then meets all processes alike. Raises `Broken`."""
        for live in self.lives:
            costs = self.prober(live).costs
            if burn_in.needed(live.loop, costs) and not burn_in.has_trained_long(live.loop, costs):
                with self._asking(live):
                    # A script that soon ends has no steps for more than one.
                    most = burn_in.most_windows(costs) if costs.most_steps is None else 1
                    taken = self._thrown_away(live, self._window_seconds / 2)
                    burn_in.burn_in(taken, most=most, most_seconds=burn_in.ENOUGH_SECONDS, now=self._now)

    def rounds(self, order: Iterable[Sequence[str]]) -> None:
        """Run rounds: in each, one window of every side that it names, one after another. Raises `Broken`."""
        for block, names in enumerate(order, 1):
            sizes = self._sizes([self.live(name) for name in names], first=block == 1)
            for name in names:
                live = self.live(name)
                with self._asking(live):
                    prober = self.prober(live)
                    prober.block = block
                    window = prober.measure(live.session, probe(BASELINE, live.side.setting), size=sizes[name])
                    self.windows(live).append(window)
                    live.trained += window.lead_in_steps + window.steps
                    # Once a process has ended, its memory can't be read any more.
                    self.note_memory(live)

    def explain(
        self, live: Live, each: Probe, seconds: float, options: dict[str, Any], *, most_seconds: float = math.inf
    ) -> tuple[Window, dict[str, Any]]:
        """A window that explains, as `Prober.explain`. The workers are watched meanwhile, which disturbs nothing that
        counts. Raises `Broken`. A process that breaks in here may do so because of doctor's timers, so no side is
        blamed."""
        with self._asking(live, alone=False), self.outside.workers_of(live.session) as watch:
            told = self.prober(live).explain(live.session, each, seconds, options, most_seconds=most_seconds)
        live.worker_bytes = watch.peak
        return told

    def note_workers(self, live: Live) -> None:
        """Look at how much memory its loader workers have for themselves, in a short window that is thrown away.
        Without workers, look at once, because other children may exist. If steps are long, no window is short, and what
        the windows that counted have told does. Raises `Broken`, for which no side is blamed, as in `explain`."""
        if any(self.prober(each).costs.has_long_steps for each in self.lives):
            told = {each.side.name: self._told_of_workers(each) for each in self.lives}
            if None not in told.values():
                live.worker_bytes = told[live.side.name]
                return
        with self._asking(live, alone=False), self.outside.workers_of(live.session) as watch:
            if live.num_workers:
                self._thrown_away(live, WORKERS_SECONDS)()
        live.worker_bytes = watch.peak

    def _told_of_workers(self, live: Live) -> int | None:
        """The most bytes that its workers had for themselves at the end of a window; None if none told it."""
        held = (window.memory.workers for window in self.windows(live) if window.memory is not None)
        return max((each for each in held if each is not None), default=None)

    def note_memory(self, live: Live) -> None:
        """Look at how much memory its training processes have held so far."""
        seen = self.outside.memory_of(live.session)
        if seen is not None:
            live.own_bytes = max(seen, live.own_bytes or 0)

    def outlived(self, failed: Live) -> bool:
        """Whether all others train on beyond the step at which this one failed."""
        # It is not known how far it came in the window in which it failed.
        kept = [window for each in self._measured.values() for window in each.windows]
        goal = failed.trained + 2 * max((window.lead_in_steps + window.steps for window in kept), default=0)
        return all(self._comes_beyond(live, goal) for live in self.lives if live is not failed)

    def _comes_beyond(self, live: Live, goal: int) -> bool:
        train = self._thrown_away(live, self._window_seconds)
        with contextlib.suppress(Broken):
            for _ in range(MOST_TO_OUTLIVE):
                if live.trained > goal:
                    return True
                with self._asking(live):
                    train()
        return False

    def _thrown_away(self, live: Live, seconds: float) -> Callable[[], Window]:
        """Returns a function that runs a window which is not counted."""

        def taken() -> Window:
            window = self.prober(live).measure(live.session, probe(BURN_IN, live.side.setting), seconds=seconds)
            live.trained += window.lead_in_steps + window.steps
            return window

        return taken

    @contextlib.contextmanager
    def _asking(self, live: Live, *, alone: bool = True) -> Iterator[None]:
        """If something ends the process inside this context, raise it as `Broken`."""
        try:
            yield
        except SessionOver as over:
            raise self._broke(Broken(live, over, alone=alone)) from over
        except OutOfTime as late:
            raise self._broke(Broken(live, SessionOver(Ending.SLOW), alone=alone)) from late

    def _broke(self, broken: Broken) -> Broken:
        self.broken = self.broken or broken
        return broken


def turns(names: Sequence[str], rounds: int, generator: random.Random) -> Iterator[list[str]]:
    """The order of the sides in each round: random, and reversed in every second round, so that drift cancels."""
    order = list(names)
    for number in range(rounds):
        order = generator.sample(order, len(order)) if number % 2 == 0 else order[::-1]
        yield order


def _same_rows(live: Live) -> tuple[object, ...]:
    """What is equal for processes whose steps of the same number have the same rows, if seeds are fixed."""
    found = live.loop
    return found.has_loader, found.batch_size, found.period, found.drawn_by, in_part(live.side.setting)


def _begun_later(live: Live, prober: Prober, size: WindowSize) -> WindowSize:
    """A window that begins up to its own length later, by chance."""
    costs = prober.costs
    if size.epochs or costs.regular or costs.most_steps is not None:
        return size
    chance = random.Random(live.session.number)
    return replace(size, skipped=chance.randrange(0, size.steps + 1, costs.shape.period))


def _begins(live: Live) -> int:
    """Batches of the training's order, or steps, that have gone by when its loop is found; those of its workers too."""
    found = live.loop
    return found.position + (0 if found.iterable else schedule.shape_of(found).loading({}).depth)


def _can_be_whole(live: Live) -> bool:
    """Whether windows can be whole epochs."""
    shape = schedule.shape_of(live.loop)
    return shape.served and shape.epoch_batches is not None


def _prober(
    live: Live, budget: Budget, window_seconds: float, brief: bool, outside: Outside, known: Costs | None
) -> Prober:
    """A prober for this process alone. If the user set no budget, a window is awaited as long as its steps may take."""
    found = live.loop
    step = schedule.typical_step(found.step_seconds, found.num_workers, found.period)
    costs = Costs(schedule.shape_of(found), step, window_seconds, brief=brief)
    if known is not None:
        costs.take_over(known)
    return Prober(Measurements(found), costs, budget.patient(), run_queue=outside.run_queue)
