"""The order of an examination: find the loop, look where time goes, measure, choose, measure again in new processes,
look closer.

`examine` runs sessions until the plan or the budget is done, and hands what was gathered to `outcome`. If something
ends it early, it returns what was learnt by then.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable
from pathlib import Path

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Rank
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine import deciding, no_result, outcome, telling
from bottleneck_doctor.examine.blocks import Blocks
from bottleneck_doctor.examine.fresh import fresh_runs
from bottleneck_doctor.examine.going_on import Leading
from bottleneck_doctor.examine.request import ExaminationOutcome as ExaminationOutcome
from bottleneck_doctor.examine.request import ExaminationRequest as ExaminationRequest
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.explain.explainer import ALLOWANCE, Explainer, reserve
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.starter import LONGEST_SETUP, Live, Side, Starter
from bottleneck_doctor.protection.protector import Protector, protecting
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress

DEFAULT_BUDGET = 180.0
"""Seconds for an ordinary script. The first set-up, which may have to build caches, comes on top."""
ENDING_SECONDS = 2.0
"""Seconds kept for the end: ending the process, putting files back, judging, and writing the report."""
ENDING_SHARE = 0.1
"""The largest part of a small budget that is kept for the end."""
LAUNCHED_ENDING_SECONDS = 6.0
"""How many seconds longer a launcher may take to end its ranks."""

MOST_DEAD_SESSIONS = 3
MOST_SHORT_LIVES = 4
"""If the script came to its end so often before a setting was compared, it trains for too few steps."""
MOST_TIMES_APART = 2
"""If ranks have come apart in this many processes, they will come apart in the next one too."""


def examine(request: ExaminationRequest, progress: Progress, outside: Outside | None = None) -> ExaminationOutcome:
    """Examine the entrypoint. Raises `DoctorError` if nothing could be learnt at all.

    `outside`: the clock, the processes and what watches them; by default, those of this machine.
    """
    with terminate_as_interrupt():
        return _Examination(request, progress, outside or Outside()).run()


class _Examination:
    def __init__(self, request: ExaminationRequest, progress: Progress, outside: Outside) -> None:
        self.request = request
        self.progress = progress
        self.outside = outside
        self.budget = self._new_budget()
        self.seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
        self.generator = random.Random(self.seed)
        self.starter = Starter(self.budget, progress, outside, verbose=request.verbose, discretion=request.discretion)
        self.protector: Protector | None = None
        self.ranks: list[Rank] = []
        self.interrupted = False
        self.error: DoctorError | None = None
        self.bug: Exception | None = None
        self.times_apart = 0
        self.blocks: Blocks | None = None
        """Known once the loop is found."""
        self.explainer: Explainer | None = None

    def _new_budget(self) -> Budget:
        total = self.request.budget
        if total is None:
            return Budget(DEFAULT_BUDGET, strict=False, now=self.outside.now)
        budget = Budget(total - self._ending(total), strict=True, now=self.outside.now)
        budget.end_by(total, self._ending(total))
        return budget

    def _ending(self, total: float) -> float:
        """Seconds kept for the end of an examination that takes `total` seconds."""
        seconds = ENDING_SECONDS + (LAUNCHED_ENDING_SECONDS if self.request.start.launcher else 0.0)
        return min(seconds, ENDING_SHARE * total)

    def run(self) -> ExaminationOutcome:
        try:
            entrypoint = self.request.start.entrypoint()
            self.protector = Protector() if self.request.start.in_place else protecting(Path.cwd(), entrypoint)
            # Explaining has its own reserved time, so it goes on even if the time to measure is over.
            with contextlib.suppress(OutOfTime):
                if self.request.fresh_runs:
                    fresh_runs(self._at_loop, self._in_session, self.budget, self.generator)
                else:
                    self._sessions()
            if self.blocks is not None and self._has_baseline():
                with contextlib.suppress(OutOfTime):
                    self.blocks.measure_beside(self._side(), self._patience)
            for then in (self._complete_claims, self._explain_the_rest, self._use_the_rest):
                with contextlib.suppress(OutOfTime):
                    then()
        except KeyboardInterrupt:
            self.interrupted = True
            self.progress.note("Interrupted: writing a report of what is known so far")
        except DoctorError as error:
            if not self._has_reason():
                raise
            self.error = error
        except Exception as error:
            # If doctor itself has a bug, the rest is lost, but nothing that was measured.
            if not self._has_baseline():
                raise
            self.bug = error
        finally:
            if self.protector is not None:
                self.protector.close()
        return self._outcome()

    def _sessions(self) -> None:
        """Run one process after another, with a share of the time each, until as many as planned have held a block, or
        what is known is enough."""
        idle = 0
        while self.blocks is None or (self.blocks.wanted() and self.blocks.has_time()):
            before = self._gathered()
            self._in_session(lambda live: self._at_loop().work(live))
            idle = 0 if self._gathered() > before else idle + 1
            if idle >= MOST_DEAD_SESSIONS or self.times_apart >= MOST_TIMES_APART:
                return
            if self.blocks is not None and self.blocks.lifetime.lives >= MOST_SHORT_LIVES and not self.blocks.held():
                return
            if self.blocks is not None and self._has_baseline():
                self.blocks.look_on(self._side(), self._patience)

    def _gathered(self) -> int:
        return 0 if self.blocks is None else self.blocks.selection.measured.gathered()

    def _at_loop(self) -> Blocks:
        assert self.blocks is not None
        return self.blocks

    # -- one session -----------------------------------------------------------------------------------------------

    def _in_session(self, work: Callable[[Live], None]) -> None:
        """Start a process and work in it once it stands at its loop. If it ends by itself before anything was learnt,
        raises the `DoctorError` that says why."""
        what = f"Process {self.starter.number + 1}"
        self.progress.stage(f"Starting the script ({what[0].lower()}{what[1:]})")
        try:
            with self.starter.live([self._side()], what=what, patience=self._patience) as (live,):
                session = live.session
                self.ranks = self.ranks or [
                    Rank(rank=each.rank, local_rank=each.local_rank, host=each.host) for each in session.ranks
                ]
                if self.blocks is None:
                    self.blocks = self._found(live.loop, self.starter.setups[session.number])
                self.blocks.stand_at(live)
                with contextlib.nullcontext() if self.explainer is None else self.explainer.watching(live):
                    work(live)
        except SessionOver as over:
            if over.ending in (Ending.END, Ending.AWAY) and self.blocks is not None:
                self.blocks.script_ended(over.still)
            self._give_up_on(over)
            self.times_apart += over.apart

    def _side(self) -> Side:
        """The training as written."""
        start = self.request.start
        assert self.protector is not None
        return Side(
            name=BASELINE,
            argv=start.argv(),
            cwd=Path.cwd(),
            environment=start.environment,
            protector=self.protector,
            launched=bool(start.launcher),
            listen=start.listen,
            tries=None if self.blocks is None else self.blocks.selection.tried(),
        )

    def _patience(self) -> float:
        """Seconds to wait for a loop."""
        first = not self.starter.setups and not self.budget.strict
        return LONGEST_SETUP if first else max(0.0, self.budget.left())

    def _found(self, found: messages.Found, setup: float) -> Blocks:
        """The loop is known: make the selection and the plan."""
        step = schedule.typical_step(found.step_seconds, found.num_workers, found.period)
        measured = Measurements(found)
        focuses = self.request.sessions is None
        selection = Selection(measured, self.request.only, self.request.skip, focuses=focuses)
        if not self.budget.strict:
            self.budget.forgive(setup)
            total = self.budget.elapsed() + DEFAULT_BUDGET + (ALLOWANCE if self.request.explain is not None else 0.0)
            self.budget.end_by(total, self._ending(total))
        allowance = reserve(self.budget) if self.request.explain is not None else None
        plan = schedule.plan(self.budget.left(), setup, step, selection.size(), self.request.sessions)
        costs = Costs(schedule.shape_of(found), step, plan.window_seconds, brief=True)
        live = telling.Telling(measured, self.budget, self.progress)
        prober = Prober(measured, costs, self.budget, live, self.outside.run_queue)
        prober.keeps_workers = prober.leaves_pauses = True
        prober.spare = 0.0 if allowance is None else allowance.seconds
        prober.keeps_losses = True
        if self.request.explain is not None and allowance is not None:
            self.explainer = Explainer(
                measured,
                prober,
                self.budget,
                self.progress,
                self.request.explain,
                allowance,
                sampler=self.outside.sampler,
                watch=self.outside.watch,
            )
        self.progress.note(telling.loop(found, step, self.ranks))
        return Blocks(
            selection,
            prober,
            plan,
            self.starter,
            self.explainer,
            sessions=self.request.sessions,
            generator=self.generator,
            confirming=None if self.ranks else self.request.confirming,
        )

    # -- why ------------------------------------------------------------------------------------------------------

    def _complete_claims(self) -> None:
        """If a setting seems to help, run the processes that its claim still lacks, before the lines are timed. By then
        it is known where the time goes, but not yet what the setting brings."""
        explainer, blocks = self.explainer, self.blocks
        if explainer is None or blocks is None or not explainer.done or self.request.fresh_runs:
            return
        lacking = Leading.of(blocks.selection).lacking(blocks.held()) if self._has_baseline() else 0
        if lacking > 0 and blocks.wanted() and blocks.selection.promising():
            best = blocks.selection.probes(self.starter.number + 1, first_block=True)[0].key
            cost = blocks.least_session() + blocks.prober.costs.seconds.get(best, 0.0)
            if self.budget.left() + explainer.allowance.left() > lacking * cost:
                with explainer.allowance.lent():
                    self._sessions()
                blocks.interim.tell_sure()

    def _explain_the_rest(self) -> None:
        """Run what needs its own process: the line timings, and everything else that no session got to."""
        explainer, blocks = self.explainer, self.blocks
        if explainer is None or blocks is None or not self._has_baseline():
            return
        if not blocks.wanted() or self.budget.left() <= blocks.least_session():
            explainer.allowance.inherit()
        if not explainer.done:
            self._explain_in_a_session(explainer, self._explain_all)
        self._explain_in_a_session(explainer, explainer.lines)

    def _use_the_rest(self) -> None:
        """Run processes that a claim still lacks, if explaining took less time than was reserved for it, or if so few
        are lacking that there may be time for them."""
        blocks = self.blocks
        if blocks is None or not self._has_baseline() or self.request.fresh_runs:
            return
        if self.explainer is not None:
            self.explainer.allowance.give_back()
            self._sessions()
        if self.request.sessions is None and deciding.goes_on(blocks, self.starter):
            self._sessions()
        blocks.interim.tell_sure()

    def _explain_all(self, live: Live) -> None:
        if self.explainer is not None:
            self.explainer.begin(live)
            self.explainer.explain(live, self.starter.setup())

    def _explain_in_a_session(self, explainer: Explainer, gather: Callable[[Live], None]) -> None:
        if explainer.wants_session(self.starter.setup()):
            with explainer.allowance.charged():
                self._in_session(gather)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _has_baseline(self) -> bool:
        return self.blocks is not None and self.blocks.prober.has_baseline()

    def _has_reason(self) -> bool:
        """Whether it is known where the training as written spends its time."""
        return self.explainer is not None and self.explainer.explanation.phases is not None

    def _give_up_on(self, over: SessionOver) -> None:
        """Raise the right error if a session ended before the training as written could be measured."""
        if self._has_baseline():
            return
        if self.explainer is not None and self.explainer.busy:
            # Timers or py-spy may have broken the process. So the next one is measured at once, without them.
            self.explainer.busy = False
            return
        if over.ours:
            raise no_result.guest_failed(over)
        if over.apart:
            raise no_result.ranks_apart(over)
        if over.crashed:
            raise no_result.entrypoint_failed(over)
        if self.blocks is None:
            raise no_result.no_training(self.starter.farewell, over.tail)

    def _unmeasured(self) -> DoctorError:
        """The error that says why the training as written was not measured."""
        ended = [self.starter.endings.get(record.number) is Ending.END for record in self.starter.records]
        if self.blocks is not None and (all(ended) or self.budget.left() > self.blocks.least_session()):
            return no_result.no_training(self.starter.farewell, "")
        if self.blocks is not None:
            return no_result.out_of_time(self.budget.total or self.budget.elapsed())
        return no_result.not_found(self.budget.total or self.budget.elapsed(), self.starter.seen, self.starter.stood)

    def _outcome(self) -> ExaminationOutcome:
        self.progress.stage("Writing the report")
        if not self._has_baseline() and not self.interrupted:
            self.error = self.error or self._unmeasured()
            if not self._has_reason():
                raise self.error
        starter, blocks, last, protector = self.starter, self.blocks, self.starter.last.get(BASELINE), self.protector
        result, bug = outcome.result_and_bug(
            outcome.Gathered(
                argv=self.request.discretion.words(self.request.start.entrypoint()),
                repeat=self.request.repeat(self.seed),
                settling=self.request.settling,
                seed=self.seed,
                budget=self.request.budget or DEFAULT_BUDGET + self.budget.extended,
                seconds=self.budget.elapsed(),
                fresh_runs=self.request.fresh_runs,
                interrupted=self.interrupted,
                unmeasured=self.error.sentence if self.error is not None else "",
                records=starter.records,
                endings=starter.endings,
                ranks=self.ranks,
                missing_ranks=[] if last is None else last.session.rank_group.missing,
                hello=None if last is None else last.session.hello,
                selection=None if blocks is None else blocks.selection,
                has_baseline=self._has_baseline(),
                interim=None if blocks is None else blocks.interim,
                beside=None if blocks is None else blocks.beside,
                explanation=None if self.explainer is None else self.explainer.explained(),
                protection=None if protector is None else protector.told(),
                lost_files=[] if protector is None else protector.lost,
                source=self.request.discretion.source,
            )
        )
        self.bug = self.bug or bug
        result = self.request.discretion.document(result)
        if self.error is not None:
            return ExaminationOutcome(result, self.error.exit_code, self.error)
        code = Exit.BUG if self.bug is not None else Exit.INTERRUPTED if self.interrupted else Exit.DONE
        costs, loop = (None, None) if blocks is None else (blocks.prober.costs, blocks.selection.found)
        return ExaminationOutcome(result, code, bug=self.bug, costs=costs, loop=loop)
