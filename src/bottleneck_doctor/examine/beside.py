"""Measures settings that a process has to be started with, such as another memory allocator.

They can't be switched while a process trains. So a process started with the setting and a process as written stand at
their loops side by side, and their windows take turns. Each pair of processes gives one number. There are as many pairs
as a claim needs processes.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.examine import telling, time_wanted
from bottleneck_doctor.examine.likeliest import LARGE, LOST
from bottleneck_doctor.examine.pair_costs import PAIRS, ROUNDS, one_pair, warming_windows
from bottleneck_doctor.examine.selection import WORTH_IT, Selection
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.measure.budget import Allowance
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.side_by_side import SideBySide, turns
from bottleneck_doctor.measure.side_pairs import LEAST_ROUNDS, PairSample, SideSample
from bottleneck_doctor.measure.starter import Broken, Live, Side, Starter
from bottleneck_doctor.protection.protector import Protector, protecting
from bottleneck_doctor.statistics.speedups import Observation
from bottleneck_doctor.wording import words

WINDOW_SECONDS = 0.7
"""What a window's timed part aims at."""
MEMORY_TO_SPARE = 1.2
"""How many times the memory that one process has held so far is reserved for each process."""
MOST_OF_THE_TIME = 0.6
"""Part of the time left that all pairs together may take."""
STARTS_IN = 1.5
"""How many times as long as a whole pair before the start of one may take."""
_APART = 100_000
"""Added to a pair's number, so that no pair counts as the same process as a session."""


@dataclass(frozen=True)
class Design:
    """How pairs are made: `at_once` settings beside the training as written, `rounds` windows of each. `thin`: fewer
    than there would be with enough time and memory."""

    at_once: int
    rounds: int
    thin: bool = False


class Beside:
    """Measures the settings of `selection` that a process has to be started with. `observations` and `windows`: the
    results so far."""

    def __init__(self, selection: Selection, starter: Starter, generator: random.Random) -> None:
        self.observations: list[Observation] = []
        self.windows: list[Window] = []
        self._selection = selection
        self._starter = starter
        self._generator = generator
        self._allowance: Allowance | None = None
        self._design = Design(0, ROUNDS)
        self._known: Costs | None = None
        self._looked: tuple[float, float] | None = None
        """A time, and for how many seconds the kernel had worked for the process by then."""
        self._ceiling = 1.0
        """How many times as fast training would be if the kernel took no time."""

    # -- what can pay --------------------------------------------------------------------------------------------------

    def look_at(self, live: Live) -> None:
        """Begin to count for how long the kernel works for this process."""
        kernel = self._kernel_seconds(live)
        self._looked = None if kernel is None else (self._starter.budget.now(), kernel)

    def set_apart(self, live: Live, known: Costs, *, alone: bool, spare: float = 0.0) -> None:
        """Reserve time for the settings that can pay, by what `look_at` has seen since, unless it would be too much.

        All settings are measured at once if memory and time allow, otherwise fewer; then a setting that clearly loses
        makes room for the next. `known`: what windows of the training as written cost. `alone`: nothing else will be
        measured any more. `spare`: seconds that may be added to the budget at all. All of them are for these settings
        if they promise more than what was measured, and else a half.
        """
        budget = self._starter.budget
        kernel = self._kernel_seconds(live)
        if self._looked is not None and kernel is not None and budget.now() > self._looked[0]:
            since, before = self._looked
            share = min(1.0, max(0.0, kernel - before) / (budget.now() - since))
            self._selection.heed_kernel(share)
            self._ceiling = 1 / max(1e-9, 1 - share)
        settings = len(self._selection.to_start())
        if not settings or live.session.ranks:
            return
        self._known = known
        first = self._promise_most()
        most = (1.0 if alone or first else MOST_OF_THE_TIME) * budget.left()
        more = spare if first else spare / 2
        here = min(settings, self._most_at_once(live))
        designs = Design(here, ROUNDS), Design(here, LEAST_ROUNDS), Design(1, LEAST_ROUNDS)
        for added, design in itertools.product(sorted({0.0, more}), designs):
            pair = self._pair_seconds(design)
            lacking = max(0.0, PAIRS * pair - most)
            if 0 < design.at_once <= here and lacking <= added:
                self._design = replace(design, thin=design != Design(settings, ROUNDS))
                if lacking:
                    budget.extend(lacking)
                    self._starter.progress.note(telling.pairs(self._selection.to_start(), lacking))
                # One more pair for each setting that waits until another one loses and makes room.
                seconds = (PAIRS + settings - design.at_once) * pair
                self._allowance = budget.reserve(min(most + lacking, seconds), inside=True)
                return

    def comes_first(self) -> bool:
        """Whether pairs promise more than all that was measured so far, and were not measured yet."""
        return self._allowance is not None and self._promise_most()

    def _promise_most(self) -> bool:
        if self._ceiling < LARGE:
            return False
        measured = self._selection.measured
        pairs = pairing.pairs(measured.windows, measured.epoch_batches)
        return not time_wanted.leads(pairs, measured.tried(), WORTH_IT)

    def _pair_seconds(self, design: Design) -> float:
        """About how many seconds a pair takes, with the start of its processes."""
        assert self._known is not None
        costs = self._known.with_windows_of(WINDOW_SECONDS)
        window = costs.measuring(schedule.probe(labels.BASELINE, {}))
        # Rather too few: pairs that were begun are finished.
        warming = warming_windows(costs)
        return one_pair(design.at_once, self._starter.setup(), window, rounds=design.rounds, warming=warming)

    def _most_at_once(self, live: Live) -> int:
        """How many processes fit into memory beside the one as written. The process of `live` has ended by then."""
        outside = self._starter.outside
        own, free = outside.memory_of(live.session), outside.free_bytes()
        if own is None or free is None:
            return len(self._selection.to_start())
        return int((free + own) / (MEMORY_TO_SPARE * own)) - 1

    def _kernel_seconds(self, live: Live) -> float | None:
        hello = live.session.hello
        return None if hello is None else self._starter.outside.kernel_seconds(hello.pid)

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def measure(self, as_written: Side, patience: Callable[[], float]) -> None:
        """Measure pairs of processes in the reserved time, until there are enough. A setting whose process fails is
        ruled out. `patience`: as for `Starter.live`."""
        if self._allowance is None:
            return
        allowance, self._allowance = self._allowance, None
        with allowance.charged():
            self._pairs(allowance, as_written, patience)
        allowance.give_back()

    def _pairs(self, allowance: Allowance, as_written: Side, patience: Callable[[], float]) -> None:
        waiting = {labels.key_of(setting): dict(setting) for setting in self._selection.to_start()}
        left: dict[str, Setting] = {}
        taken: Counter[str] = Counter()
        now, longest, number = self._starter.budget.now, 0.0, 0
        with contextlib.ExitStack() as stack:
            sides = {key: self._side(key, setting, as_written, stack) for key, setting in waiting.items()}
            as_written = replace(as_written, tries={})
            known = None if self._known is None else dict.fromkeys((as_written.name, *sides), self._known)
            while True:
                for key in list(waiting)[: self._design.at_once - len(left)]:
                    left[key] = waiting.pop(key)
                if not left or not (allowance.room(longest) or self._postpones(longest)):
                    return
                begun, number = now(), number + 1
                try:
                    waits = self._patient(patience, longest)
                    with self._started(number, [as_written, *(sides[key] for key in left)], left, waits) as lives:
                        pair = SideBySide(
                            lives,
                            self._starter.budget,
                            self._starter.outside,
                            window_seconds=WINDOW_SECONDS,
                            brief=True,
                            known=known,
                            keeps_workers=True,
                        )
                        self._pair(number, pair, left)
                except Broken as broken:
                    key = broken.live.side.name
                    if key not in left:
                        return  # The training as written ends by itself: nothing can be compared with it.
                    self._selection.measured.rule_out(schedule.probe(key, left.pop(key)), broken.why)
                longest = max(longest, now() - begun)
                taken.update(left.keys())
                left = {key: each for key, each in left.items() if taken[key] < PAIRS and not self._has_lost(key)}

    def _postpones(self, seconds: float) -> bool:
        """Whether everything may end later by the seconds of a pair: what was begun with fewer pairs than a claim needs
        would be undecided without it. The number of pairs stays as planned, whatever they show."""
        budget = self._starter.budget
        more = seconds - budget.until_end()
        if budget.strict or budget.total is None or not self.observations or budget.total + more > time_wanted.LONGEST:
            return False
        if self._is_outdone():
            return False
        budget.postpone(more)
        return True

    def _is_outdone(self) -> bool:
        """Whether what windows have shown is faster than pairs are so far, and lacks processes that a claim takes: then
        they promise more than another pair does."""
        measured = self._selection.measured
        fastest = measured.fastest(WORTH_IT)
        if fastest is None:
            return False
        key = labels.key_of(fastest)
        if len(measured.sessions_by_key().get(key, ())) >= schedule.LEAST_SESSIONS:
            return False
        best = max(fmean(self._logs(setting)) for setting in {each.setting for each in self.observations})
        return best < math.log(measured.speeds()[key])

    def _logs(self, key: str) -> list[float]:
        """What pairs have shown of a setting so far, as logarithms."""
        return [each.log_ratio for each in self.observations if each.setting == key]

    def _patient(self, patience: Callable[[], float], longest: float) -> Callable[[], float]:
        """How long to wait for a pair to start, if a pair has taken `longest` seconds at most: longer than the reserved
        time, if the user set none."""
        budget = self._starter.budget
        if budget.strict:
            return patience
        return lambda: max(patience(), min(STARTS_IN * longest, budget.until_end()))

    def _has_lost(self, key: str) -> bool:
        """Whether a setting is clearly slower so far, and others may need its time."""
        logs = self._logs(key)
        return self._design.thin and bool(logs) and fmean(logs) < math.log(LOST)

    def _side(self, key: str, setting: Setting, as_written: Side, stack: contextlib.ExitStack) -> Side:
        """The side of a setting. It has its own protection of files, so it finds none that another side wrote."""
        in_place = type(as_written.protector) is Protector
        protector = Protector() if in_place else protecting(Path.cwd(), as_written.argv)
        stack.callback(protector.close)
        environment = {**knobs.variables(setting), **as_written.environment}
        tries = {name: told for name, told in (as_written.tries or {}).items() if name in setting}
        said = words.setting_code(setting)
        return replace(as_written, name=key, said=said, environment=environment, protector=protector, tries=tries)

    def _started(
        self, number: int, sides: Sequence[Side], settings: Mapping[str, Setting], patience: Callable[[], float]
    ) -> AbstractContextManager[list[Live]]:
        self._starter.progress.stage(f"Starting the script {len(sides)} times (pair {number}, {_said(settings)})")
        return self._starter.live(self._generator.sample(sides, len(sides)), what=f"Pair {number}", patience=patience)

    def _pair(self, number: int, pair: SideBySide, settings: Mapping[str, Setting]) -> None:
        names = [live.side.name for live in pair.lives]
        try:
            pair.burn_in()
            pair.rounds(self._rounds(names, f"Pair {number}: {_said(settings)}"))
        finally:
            self._keep(number, pair, settings)

    def _rounds(self, names: list[str], what: str) -> Iterator[list[str]]:
        """The order of the sides in each round; meanwhile, the progress says which round it is."""
        budget, rounds = self._starter.budget, self._design.rounds
        for number, order in enumerate(turns(names, rounds, self._generator), 1):
            self._starter.progress.update(f"{what}, round {number} of {rounds}", budget.elapsed(), budget.total)
            yield order

    def _keep(self, number: int, pair: SideBySide, settings: Mapping[str, Setting]) -> None:
        """Keep what a pair showed: windows for the report, and one number for each setting with enough rounds."""
        base = self._sample(pair, labels.BASELINE)
        self.windows += [replace(window, label=labels.BESIDE) for window in base.windows]
        for key, setting in settings.items():
            sample = self._sample(pair, key)
            self.windows += [replace(window, label=key, setting=dict(setting)) for window in sample.windows]
            both = PairSample(number=number, base=base, head=sample)
            if len(both.rounds()) >= LEAST_ROUNDS:
                self.observations.append(Observation(_APART + number, 1, key, -both.ratio().log, of_processes=True))

    def _sample(self, pair: SideBySide, name: str) -> SideSample:
        live = pair.live(name)
        usable = [window for window in pair.windows(live) if pairing.usable(window)]
        return SideSample(
            windows=usable, has_loader=live.loop.has_loader, epoch_batches=self._selection.measured.epoch_batches
        )


def _said(settings: Mapping[str, Setting]) -> str:
    return words.listed([words.setting_text(each) for each in settings.values()])
