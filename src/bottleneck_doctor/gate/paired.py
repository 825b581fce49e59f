"""Pairs of processes, one of each revision: starts them, takes samples of them, and says which side a failure comes
from.

Identical processes differ at random, so every pair is started afresh. Two `Side`s go in, `PairSample`s come out.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Environment, Phases
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine import no_result
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.sides import steady
from bottleneck_doctor.measure import first_look, phases, schedule, side_pairs
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample, SideSample
from bottleneck_doctor.measure.starter import LONGEST_SETUP, Broken, Live, Side, Starter
from bottleneck_doctor.session import environment
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import EDITED, REVISIONS, SideWords

PHASE_WINDOW_SECONDS = 0.6
LOOK_STEPS = 4
"""About how many long steps the window of phases has with its lead-in that comes first."""
LEAST_KEPT_ROUNDS = 2
"""A pair that breaks keeps its rounds if there are at least this many."""
MOST_BROKEN_PAIRS = 3
_PORT_TAKEN = re.compile(
    r"EADDRINUSE|address already in use|Port `\d+` is already in use|on port `\d+`, but", re.IGNORECASE
)


class Pairs:
    """Starts pairs of a base and a head, in random order. `phases`: whether phases are timed in every pair, and not
    only in the first one that gets that far. `wanted`: how many pairs should fit into the budget. `explains`: whether
    phases are timed at all, and workers are looked at in more than one pair. `known`: what windows of the loop cost;
    None if nobody has measured it."""

    def __init__(
        self,
        base: Side,
        head: Side,
        starter: Starter,
        generator: random.Random,
        *,
        phases: bool = False,
        wanted: int = plan.PAIRS_WANTED,
        explains: bool = True,
        known: Costs | None = None,
    ) -> None:
        self.starter = starter
        self._known: dict[str, Costs] = {} if known is None else {base.name: known, head.name: known}
        self._phases_wanted = explains
        self._phases_always = phases and explains
        self._looks_always = explains
        self._looked = False
        self._sides = (base, head)
        self._generator = generator
        self._wanted = wanted
        self._reversed: list[Side] = []
        """The order of the last pair the other way round, if the next one starts in it."""
        self._loads: list[float] = []
        """How much other programs loaded the machine during the windows of all pairs so far."""

    @contextlib.contextmanager
    def pair(self, number: int) -> Iterator[SideBySide]:
        """Two started processes whose loops are found, the base first. They are ended whatever happens. Raises what
        `Starter.live` does, and `DoctorError` if all failed in the same way before their loops were found."""
        sides = self._in_order()
        starter = self.starter
        with started(starter, sides, f"Pair {number}", first=number == 1) as lives:
            by_name = {live.side.name: live for live in lives}
            both = [by_name[side.name] for side in self._sides]
            yield SideBySide(
                both,
                starter.budget,
                starter.outside,
                window_seconds=plan.WINDOW_SECONDS,
                brief=bool(self._known) or _are_slow(both),
                known=self._known,
                losses=True,
            )

    def _in_order(self) -> list[Side]:
        """In which order both are started: by chance, and reversed in every second pair. The one that starts first has
        the machine to itself for a while, and would look quicker to start if it were the same one each time."""
        started, self._reversed = self._reversed, []
        if started:
            return started
        sides = list(self._sides)
        self._generator.shuffle(sides)
        self._reversed = sides[::-1]
        return sides

    def measure(self, number: int, both: SideBySide) -> PairSample:
        """Measure windows of both in turn, then phases or the workers, and memory. Raises `Broken` if too little could
        be measured. If steps are long, phases come first: they tell how short windows may be.

        A pair that was begun is finished even if the time is over, so that whether it counts does not depend on how
        fast it was.
        """
        told: Mapping[str, Mapping[str, float] | None] = {}
        shares: Mapping[str, Phases | None] = {}
        try:
            if self._phases_wanted and not self._known and _are_slow(both.lives):
                shares = {live.side.name: _shares_of(both, live, looks=True) for live in both.lives}
                both.hold_the_same()
            self._rounds(both)
            if self._phases_wanted:
                self._phases_wanted = self._phases_always
                seen = shares or {live.side.name: _shares_of(both, live) for live in both.lives}
                told = {live.side.name: _seconds_of(both, live, seen[live.side.name]) for live in both.lives}
                if shares:
                    self._known = {live.side.name: both.prober(live).costs for live in both.lives}
            elif self._looks_always or not self._looked:
                for live in both.lives:
                    both.note_workers(live)
                self._looked = True
        except Broken:
            # Phases that only one side could still show are not a difference between the revisions.
            told = {}
        base, head = (sample_of(both, live, told.get(live.side.name)) for live in both.lives)
        if both.broken is not None and None in (base.peak_bytes, head.peak_bytes):
            base, head = replace(base, peak_bytes=None), replace(head, peak_bytes=None)
        sample = PairSample(number=number, base=base, head=head, usual=tuple(self._loads))
        self._loads += ev.known_loads([*base.windows, *head.windows])
        if len(sample.rounds()) < LEAST_KEPT_ROUNDS:
            raise both.broken or nothing_timed(both)
        return sample

    def _rounds(self, both: SideBySide) -> None:
        began = self.starter.budget.now() - self.starter.setup_seconds
        try:
            both.burn_in()
            count = plan.rounds(
                self.starter.setup_seconds, both.cost_seconds(), self.starter.budget.seconds, self._wanted
            )
            count = both.lived_for(count, least=plan.LEAST_ROUNDS)
            order = itertools.chain(plan.order(count, self._generator), self._again(both))
            both.rounds(self._as_long_as_there_is_time(order, began))
        except Broken as broken:
            if broken.crashed:
                broken.alone = both.outlived(broken.live)
            raise

    def _again(self, both: SideBySide) -> Iterator[tuple[plan.Name, plan.Name]]:
        """More rounds, if other programs disturbed so many that too few are left, and both sides train on. A program
        that disturbs these, too, will keep running."""
        for names in plan.order(plan.MOST_AGAIN, self._generator):
            base, head = (side_pairs.loads_by_round(both.windows(live)) for live in both.lives)
            if len(side_pairs.calm_rounds(base, head, self._loads)) >= plan.LEAST_ROUNDS:
                return
            if both.lived_for(plan.MOST_AGAIN, least=0) < plan.MOST_AGAIN:
                return
            yield names

    def _as_long_as_there_is_time(
        self, order: Iterable[tuple[plan.Name, plan.Name]], began: float
    ) -> Iterator[tuple[plan.Name, plan.Name]]:
        """The rounds of a pair, which `began` at that time by the budget's clock."""
        budget = self.starter.budget
        first = budget.now()
        for number, names in enumerate(order):
            now = budget.now()
            share = budget.seconds / self._wanted
            if not plan.goes_on(number, now - began, now - first, share, self._wanted):
                return
            yield names


@contextlib.contextmanager
def started(starter: Starter, sides: list[Side], what: str, *, first: bool) -> Iterator[list[Live]]:
    """What `Starter.live` gives, with the waiting times of a check. `first`: whether nothing was started before.

    If all sides fail in the same way before their loops are found, neither revision caused it: raises `DoctorError`.
    """
    with contextlib.ExitStack() as stack:
        try:
            lives = stack.enter_context(starter.live(sides, what=what, patience=_patience(starter, first=first)))
        except Broken as broken:
            if broken.everywhere:
                raise no_result.entrypoint_failed(broken) from broken
            raise
        yield lives


def _patience(starter: Starter, *, first: bool) -> Callable[[], float]:
    def seconds() -> float:
        most = LONGEST_SETUP if first else max(60.0, 4 * starter.setup_seconds)
        return min(most, max(0.0, starter.budget.left())) if starter.budget.strict else most

    return seconds


def environment_of(starter: Starter, *, steadied: bool) -> Environment:
    """The machine and the libraries, as the head's processes saw them. `steadied`: whether the variables of `--steady`
    were set."""
    head = starter.last.get("head")
    seen = environment.describe(*(None, None) if head is None else (head.session.hello, head.found))
    return replace(seen, variables={**steady.STEADY, **seen.variables}) if steadied else seen


def nothing_timed(some: SideBySide) -> Broken:
    """The failure of processes that lived on, but gave no usable window. Neither side is blamed."""
    return Broken(some.lives[-1], SessionOver(Ending.UNTIMED), alone=False)


def phases_of(some: SideBySide, live: Live) -> dict[str, float] | None:
    """Seconds a step in each phase; None if the phases could not be distinguished."""
    return _seconds_of(some, live, _shares_of(some, live))


def _shares_of(some: SideBySide, live: Live, *, looks: bool = False) -> Phases | None:
    """The shares of the phases; None if they could not be distinguished. `looks`: whether the window is the first, is
    short, and tells how long others have to be."""
    each = probe("phases:" + BASELINE, live.side.setting, mode="phases")
    costs = some.prober(live).costs
    most = LOOK_STEPS * costs.baseline_step if looks else math.inf
    window, detail = some.explain(live, each, PHASE_WINDOW_SECONDS, {}, most_seconds=most)
    if window.status != "ok" or not window.steps:
        return None
    if looks:
        made, epoch_batches = phases.loading([detail], {}), costs.shape.epoch_batches
        first_look.heed(costs, window, detail, made, live.loop, epoch_batches)
    return phases.phases([detail])


def _are_slow(lives: Sequence[Live]) -> bool:
    """Whether steps of all of them take so long that windows are short for them."""
    found = [live.loop for live in lives]
    steps = [schedule.typical_step(each.step_seconds, each.num_workers, each.period) for each in found]
    return min(steps) >= schedule.LONG_LEAD_IN


def _seconds_of(some: SideBySide, live: Live, shares: Phases | None) -> dict[str, float] | None:
    """Seconds a step in each phase, by their shares."""
    if shares is None:
        return None
    # Phase timers slow the loop, so only their shares are used, as parts of a step without timers.
    usable = [window for window in some.windows(live) if ev.usable(window)]
    step = sum(window.seconds for window in usable) / max(1, sum(window.steps for window in usable))
    return {name: getattr(shares, name) * step for name in shares.__dataclass_fields__}


def with_phases(sample: PairSample, both: SideBySide) -> PairSample:
    """The pair with the phases of its processes, which are still waiting at their loops. Raises `Broken`."""
    if sample.base.phases or sample.head.phases:
        return sample
    told = {live.side.name: phases_of(both, live) for live in both.lives}
    return replace(
        sample,
        base=replace(sample.base, phases=told[both.lives[0].side.name]),
        head=replace(sample.head, phases=told[both.lives[1].side.name]),
    )


def sample_of(some: SideBySide, live: Live, told: Mapping[str, float] | None) -> SideSample:
    """What a process showed. `told`: its phases, None if they could not be timed."""
    some.note_memory(live)
    shape, seen = schedule.shape_of(live.loop), some.prober(live).epoch_seen
    # What only one side has seen would make it look slower, or faster, where starting an epoch costs much.
    all_seen = all(some.prober(each).epoch_seen for each in some.lives)
    return SideSample(
        windows=some.windows(live),
        has_loader=live.loop.has_loader,
        of_closure=live.loop.of_closure,
        epoch_batches=(seen if all_seen else shape.epoch_batches) if shape.served else None,
        first_step=live.loop.setup_seconds or None,
        peak_bytes=_host_bytes(live),
        device_bytes=some.prober(live).device_bytes,
        device_reserved_bytes=some.prober(live).device_reserved_bytes,
        phases=told,
        loads_itself=live.loop.has_loader and live.num_workers == 0,
        losses=some.prober(live).losses,
    )


def _host_bytes(live: Live) -> int | None:
    """The peak memory of the training processes and their workers; None if it is not known."""
    own, workers = live.own_bytes, live.worker_bytes
    if own is None or (workers is None and live.num_workers):
        return None
    return own + (workers or 0)


def failure(broken: Broken, sides: SideWords = REVISIONS) -> DoctorError:
    """Why one side can't be measured. `sides`: how both are called."""
    side = broken.live.side
    if broken.ours:
        return no_result.guest_failed(broken)
    if broken.apart:
        return no_result.ranks_apart(broken)
    if broken.ending in (Ending.END, Ending.HANG):
        farewell = broken.live.session.farewell
        hung = broken.ending is Ending.HANG
        plain = no_result.entrypoint_failed(broken) if hung else no_result.no_training(farewell, broken.tail)
        where = side.said if broken.alone else sides.both
        told = f"{words.capitalised(where)}: {plain.sentence}"
        return DoctorError(plain.slug, told, plain.next_step, plain.exit_code, detail=plain.detail)
    if broken.ending is Ending.UNLIKE:
        return no_result.steps_unlike(side.said)
    if broken.crashed and _PORT_TAKEN.search(broken.tail):
        return DoctorError(
            "port-taken",
            f"{words.capitalised(side.said)} can't use the port at which its processes meet, because "
            f"{sides.both} run at the same time.",
            "Use the port in MASTER_PORT, which differs between the two sides, or any free port: `torchrun "
            "--standalone`, `accelerate launch --main_process_port 0`.",
            Exit.ENTRYPOINT_FAILED,
            detail=broken.tail,
        )
    reason = (broken.reason or broken.why).rstrip(".")
    trains = ", while the other side trains" if broken.alone else ""
    if sides is EDITED:
        return _edit_failed(broken, reason)
    if side.name == "base":
        return DoctorError(
            "base-failed",
            f"The script fails on {side.said}{trains}: {reason}.",
            "If the base needs a build or other files, make them with --base-setup. The end of the script's output is "
            "below.",
            Exit.ENTRYPOINT_FAILED,
            detail=broken.tail,
        )
    return DoctorError(
        "head-failed",
        f"The script fails on {side.said}{trains}: {reason}.",
        "Correct the script. The end of its output is below.",
        Exit.ENTRYPOINT_FAILED,
        detail=broken.tail,
    )


class EditedFailed(DoctorError):
    """The edited program fails. `alone`: the program as written trains beside it."""

    def __init__(self, *given: Any, alone: bool, **more: Any) -> None:
        super().__init__(*given, **more)
        self.alone = alone


def _edit_failed(broken: Broken, reason: str) -> DoctorError:
    """The same of a program as written and edited."""
    other = {True: ("; it trains with the edit", "; as written it trains"), False: ("", "")}[broken.alone]
    if broken.live.side.name == "base":
        return DoctorError(
            "entrypoint-failed",
            f"The program fails as written{other[0]}: {reason}.",
            "Give a program that trains as it is. The end of its output is below.",
            Exit.ENTRYPOINT_FAILED,
            detail=broken.tail,
        )
    said = broken.live.side.said
    return EditedFailed(
        slug="edited-failed",
        sentence=f"{words.capitalised(said)} fails{other[1]}: {reason}.",
        next_step="Correct the edit. The end of the edited program's output is below.",
        exit_code=Exit.ENTRYPOINT_FAILED,
        detail=broken.tail,
        alone=broken.alone,
    )
