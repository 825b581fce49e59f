"""Several edits of one program in one race: all of them and the program as written stand at their loops side by side,
and their windows take turns. `TryRequest`s go in, one `Check` comes out: that of the best edit, with a word on each.

Every edit is compared with the same windows of the program as written, and by the rules of `doctor try`. Because the
best of them is told, they share its error rate. An edit of which enough is known takes part no longer.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bottleneck_doctor.documents.check import STEP_TIME, Check, RacedEdit
from bottleneck_doctor.examine import no_result
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.check import Checking, CheckOutcome, Shared
from bottleneck_doctor.gate.paired import (
    LEAST_KEPT_ROUNDS,
    MOST_BROKEN_PAIRS,
    failure,
    nothing_timed,
    sample_of,
    started,
)
from bottleneck_doctor.gate.request import DEFAULT_BUDGET, TryRequest
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide, turns
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Broken, Live, Side, Starter
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words


def race(requests: Sequence[TryRequest], progress: Progress, outside: Outside | None = None) -> CheckOutcome:
    """Compare the program as written with each edit at once. The requests differ in their edits only, and there are two
    at least. Raises `DoctorError` where nothing could be compared at all.

    `outside`: as for `check`.
    """
    with terminate_as_interrupt():
        return _Race(requests, progress, outside or Outside()).run()


@dataclass
class _Runner:
    """One edit of the race. `failed`: how its program fails, as a sentence."""

    checking: Checking
    side: Side
    running: bool = True
    broken: list[Broken] = field(default_factory=list)
    failed: str = ""


class _Race:
    def __init__(self, requests: Sequence[TryRequest], progress: Progress, outside: Outside) -> None:
        self._requests = requests
        self._request = request = requests[0]
        self._progress = progress
        self._seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
        self._endless = request.pairs is not None and request.budget is None
        # More processes take more time for each number: the default is that of one edit for each of them.
        seconds = request.budget or DEFAULT_BUDGET * (1 + len(requests)) / 2
        total = None if self._endless else seconds
        self._budget = Budget(seconds, strict=not self._endless, total=total, now=outside.now)
        self._starter = Starter(self._budget, progress, outside, verbose=request.verbose, discretion=request.discretion)
        self._generator = random.Random(self._seed)
        self._runners: list[_Runner] = []
        self._base: Side | None = None

    def run(self) -> CheckOutcome:
        shared = Shared(self._starter, self._seed, len(self._requests))
        with contextlib.ExitStack() as stack:
            for number, request in enumerate(self._requests, 1):
                checking = Checking(request, self._progress, self._starter.outside, shared)
                checking.compared = stack.enter_context(request.compared(self._progress.stage))
                checking.warnings = checking.compared.warnings
                assert checking.compared.sides is not None
                base, head = checking.compared.sides
                called = f"the program with {checking.compared.head.name}"
                self._runners.append(_Runner(checking, replace(head, name=f"head-{number}", said=called)))
                # All are held against one process as written.
                self._base = self._base or base
            self._blocks()
        if any(each.checking.pairs and not each.failed for each in self._runners):
            return self._outcome()
        broken = [each for runner in self._runners for each in runner.broken]
        if broken:
            raise failure(broken[0], self._request.sides)
        raise no_result.out_of_time(self._budget.spent())

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _blocks(self) -> None:
        """Measure blocks of one process of each side until enough is known of every edit, or the time is over."""
        number = lost = 0
        base = self._base
        assert base is not None
        while self._running() and lost < MOST_BROKEN_PAIRS:
            number += 1
            begun = self._budget.now()
            sides = [base, *(each.side for each in self._running())]
            count = f"{words.count_text(len(sides) - 1, 'edit')} beside the program as written"
            self._progress.stage(f"Starting {count} (round {number} of processes)")
            try:
                shuffled = self._generator.sample(sides, len(sides))
                with started(self._starter, shuffled, f"Processes {number}", first=number == 1) as lives:
                    self._progress.update(f"Timing {count}", self._budget.elapsed(), self._budget.total)
                    self._taken(number, self._timed(lives), begun)
            except Broken as broken:
                lost += not self._blamed(broken)
                if broken.live.side is base and broken.crashed and broken.alone:
                    break
            except OutOfTime:
                break
        for runner in self._runners:
            if runner.running and runner.checking.pairs:
                runner.checking.look(last=True)

    def _running(self) -> list[_Runner]:
        return [each for each in self._runners if each.running]

    def _timed(self, lives: Sequence[Live]) -> SideBySide:
        """Windows of all in turn. A process that breaks ends the block; what the others have shown by then counts."""
        all_ = SideBySide(lives, self._budget, self._starter.outside, window_seconds=plan.WINDOW_SECONDS, losses=True)
        names = [live.side.name for live in lives]
        try:
            all_.burn_in()
            # As for a pair, whose two windows are a round: here, there are more of them in each.
            cost = all_.cost_seconds() * len(lives) / 2
            rounds = plan.rounds(self._starter.setup_seconds, cost, self._budget.seconds, self._request.pairs_wanted)
            all_.rounds(turns(names, all_.lived_for(rounds, least=plan.LEAST_ROUNDS), self._generator))
            for live in all_.lives:
                all_.note_workers(live)
        except Broken as broken:
            if broken.crashed and broken.live.side is not self._base:
                broken.alone = all_.outlived(broken.live)
        return all_

    def _taken(self, number: int, all_: SideBySide, begun: float) -> None:
        """Hand the block to every edit that took part. Raises `Broken` if none could be timed."""
        base = sample_of(all_, all_.live("base"), None)
        took, whole = self._budget.now() - begun, all_.broken
        usable = False
        for runner in self._running():
            head = sample_of(all_, all_.live(runner.side.name), None)
            own = whole if whole is not None and whole.live.side in (runner.side, self._base) else None
            sample = PairSample(number=number, base=base, head=head)
            if own is not None and own.live.side is runner.side:
                self._blamed(own)
            if len(sample.rounds()) >= LEAST_KEPT_ROUNDS:
                usable = True
                more = runner.checking.take(sample, own, took)
                runner.running = runner.running and more
        if not usable:
            raise whole or nothing_timed(all_)

    def _blamed(self, broken: Broken) -> bool:
        """Note whose failure this is. An edit whose program fails, or does not train, while the others do takes part no
        longer; False if it is none's."""
        runner = next((each for each in self._runners if each.side is broken.live.side), None)
        owner = runner or self._runners[0]
        if broken not in owner.broken:
            owner.broken.append(broken)
        if runner is None or not broken.alone or not (broken.crashed or broken.live.found is None):
            return False
        runner.running = False
        runner.failed = failure(broken, self._request.sides).sentence
        return True

    # -- the end -------------------------------------------------------------------------------------------------------

    def _outcome(self) -> CheckOutcome:
        """The check of the best edit, with all of them beside it."""
        made: list[tuple[_Runner, Check]] = []
        for runner in self._runners:
            if runner.checking.pairs:
                live = self._starter.last.get(runner.side.name)
                if live is not None:
                    self._starter.last["head"] = live
                made.append((runner, runner.checking.document()))
        checks = {id(runner): check for runner, check in made}
        rows = [self._row(runner, checks.get(id(runner))) for runner in self._runners]
        ranked = sorted(rows, key=_worth, reverse=True)
        best = next(runner for runner, row in zip(self._runners, rows, strict=True) if row is ranked[0])
        check = checks[id(best)]
        warnings = {(each.slug, each.sentence): each for _, one in made for each in one.warnings}
        ahead = f"Of {words.count_text(len(rows), 'edit')}, `{best.checking.compared.head.name}` is ahead."
        told = replace(check, race=ranked, warnings=list(warnings.values()), sentence=f"{ahead} {check.sentence}")
        return CheckOutcome(told, best.checking.compared.root)

    def _row(self, runner: _Runner, check: Check | None) -> RacedEdit:
        name = runner.checking.compared.head.name
        edit = runner.checking.tried_edit()
        assert edit is not None
        step = next((each for each in runner.checking.judged if each.id == STEP_TIME), None)
        untimed = "It could not be measured in the time that there was." if check is None else check.sentence
        return RacedEdit(
            name=name,
            verdict="not_measured" if step is None else step.verdict,
            sentence=runner.failed or untimed,
            edit=edit,
            pairs=len(runner.checking.pairs),
            losses=None if check is None or check.losses is None else check.losses.verdict,
            failed=bool(runner.failed),
        )


def _worth(row: RacedEdit) -> tuple[bool, bool, float]:
    """What edits are ranked by: those that train and keep their losses, by the lower end of what they are worth."""
    speedup, moved = row.edit.speedup, row.losses in ("moved", "not_finite")
    return row.pairs > 0 and not row.failed, not moved, 0.0 if speedup is None else speedup.low
