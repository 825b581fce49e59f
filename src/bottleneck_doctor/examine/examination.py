"""The order of an examination: discover, look where time goes, measure, choose, again in fresh processes, look closer.

`examine` runs sessions until the plan or the budget is done and hands what was gathered to `outcome`. Whatever ends it
early, what was learnt is returned.
"""

from __future__ import annotations

import contextlib
import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Rank
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine import outcome
from bottleneck_doctor.examine.race import Race
from bottleneck_doctor.examine.request import Outcome as Outcome
from bottleneck_doctor.examine.request import Request as Request
from bottleneck_doctor.examine.telling import Telling
from bottleneck_doctor.explain.explainer import ALLOWANCE, Explainer, reserve
from bottleneck_doctor.knobs import replay
from bottleneck_doctor.measure import burn_in, schedule
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Plan, Probe, probe
from bottleneck_doctor.measure.starter import LONGEST_SETUP, Side, Starter
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.protection.keeper import Keeper, protecting
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.session.session import Session
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words

DEFAULT_BUDGET = 180.0
"""Seconds for an ordinary script; the first set-up, which may have to make caches, comes on top."""
ENDING_SECONDS = 2.0
"""Of all of the time, for what comes last: to end the process, to put files back, to judge and to write the report."""
ENDING_SHARE = 0.1
"""Of a small budget it is no larger a part."""
LAUNCHED_ENDING_SECONDS = 6.0
"""How much longer a launcher may take to end its ranks."""

EXPLORING_SHARE = 0.45
"""Part of the budget that the first session may take to measure every setting once."""

BURN_IN_SHARE = 0.1
"""Part of a session's time that warming up may take."""
LEAST_WINDOWS = 3
"""Windows without which a session says nothing: a setting between two baselines."""
MOST_DEAD_SESSIONS = 3
MOST_TIMES_APART = 2
"""Ranks that came apart in as many processes will do so in the next."""


def examine(request: Request, progress: Progress, outside: Outside | None = None) -> Outcome:
    """Examine the entrypoint. Raises `DoctorError` where nothing could be learnt at all.

    `outside`: the clock, the processes and what looks at them; without, this machine's own.
    """
    with terminate_as_interrupt():
        return _Examination(request, progress, outside or Outside()).run()


class _Examination:
    def __init__(self, request: Request, progress: Progress, outside: Outside) -> None:
        self.request = request
        self.progress = progress
        self.outside = outside
        self.budget = self._new_budget()
        self.seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
        self.generator = random.Random(self.seed)
        self.starter = Starter(self.budget, progress, outside, verbose=request.verbose, discretion=request.discretion)
        self.keeper: Keeper | None = None
        self.ranks: list[Rank] = []
        self.found: messages.Found | None = None
        self.interrupted = False
        self.error: DoctorError | None = None
        self.ceilings_known = False
        self.here: messages.Found
        """The loop as the process that runs found it."""
        self.warm = False
        """Whether that process was warmed up, as far as that goes."""
        self.times_apart = 0
        # Made once the loop is found.
        self.plan: Plan
        """Made anew once it is known what is worth measuring."""
        self.measured: Measurements
        self.race: Race
        self.prober: Prober
        self.explainer: Explainer | None = None

    def _new_budget(self) -> Budget:
        total = self.request.budget
        if total is None:
            return Budget(DEFAULT_BUDGET, strict=False, now=self.outside.now)
        budget = Budget(total - self._ending(total), strict=True, now=self.outside.now)
        budget.end_by(total, self._ending(total))
        return budget

    def _ending(self, total: float) -> float:
        """Seconds kept for what comes last."""
        seconds = ENDING_SECONDS + (LAUNCHED_ENDING_SECONDS if self.request.start.launcher else 0.0)
        return min(seconds, ENDING_SHARE * total)

    def run(self) -> Outcome:
        try:
            entrypoint = self.request.start.entrypoint()
            self.keeper = Keeper() if self.request.start.in_place else protecting(Path.cwd(), entrypoint)
            # The explanation has time of its own, so it goes on where the time to measure is over.
            with contextlib.suppress(OutOfTime):
                if self.request.fresh_runs:
                    self._fresh_runs()
                else:
                    self._sessions()
            with contextlib.suppress(OutOfTime):
                self._complete_claims()
            with contextlib.suppress(OutOfTime):
                self._explain_the_rest()
            with contextlib.suppress(OutOfTime):
                self._use_the_rest()
        except KeyboardInterrupt:
            self.interrupted = True
            self.progress.note("Interrupted: writing what is known so far")
        except DoctorError as error:
            if not self._has_reason():
                raise
            self.error = error
        finally:
            if self.keeper is not None:
                self.keeper.close()
        return self._outcome()

    def _sessions(self) -> None:
        """One process after another, a share of the time each, until as many as planned held a block."""
        idle = 0
        while self.found is None or (self._wanted() and self.budget.left() > self._least_session()):
            before = self._gathered()
            self._in_session(self._work)
            idle = 0 if self._gathered() > before else idle + 1
            if idle >= MOST_DEAD_SESSIONS or self.times_apart >= MOST_TIMES_APART:
                return

    def _gathered(self) -> int:
        """Windows that say something."""
        if self.found is None:
            return 0
        told = sum(window.status == "ok" and window.mode not in ev.COUNTED for window in self.measured.windows)
        return told + sum(ev.usable(window) for window in self.measured.windows)

    def _wanted(self) -> bool:
        return self._held() < self.plan.sessions and bool(self.race.probes(self.starter.number + 1, first_block=True))

    def _held(self) -> int:
        """Sessions that hold a comparison."""
        return len(
            {window.session for window in self.measured.windows if ev.usable(window) and window.label != BASELINE}
        )

    def _least_session(self) -> float:
        """Seconds under which another session could hold nothing."""
        return self.starter.setup() + self._least_measuring()

    def _least_measuring(self) -> float:
        """Seconds of windows under which a session that stands at its loop could hold nothing."""
        return (LEAST_WINDOWS if self._has_baseline() else 1) * self.prober.costs.baseline()

    # -- one session -----------------------------------------------------------------------------------------------

    def _in_session(self, work: Callable[[Session], None]) -> None:
        """Start a process and work in it once it stands at its loop. Where nothing can be had from one that ended by
        itself, raises the `DoctorError` that says why."""
        what = f"Process {self.starter.number + 1}"
        self.progress.stage(f"Starting the script ({what[0].lower()}{what[1:]})")
        try:
            with self.starter.live([self._side()], what=what, patience=self._patience) as (live,):
                session = live.session
                self.here, self.warm = live.loop, False
                self.ranks = self.ranks or [
                    Rank(rank=each.rank, local_rank=each.local_rank, host=each.host) for each in session.ranks
                ]
                if self.found is None:
                    self._found(live.loop, self.starter.setups[session.number])
                with contextlib.nullcontext() if self.explainer is None else self.explainer.watching(session):
                    work(session)
        except SessionOver as over:
            self._give_up_on(over)
            self.times_apart += over.apart

    def _side(self) -> Side:
        """The training as written."""
        start = self.request.start
        assert self.keeper is not None
        return Side(
            name=BASELINE,
            argv=start.argv(),
            cwd=Path.cwd(),
            environment=start.environment,
            keeper=self.keeper,
            launched=bool(start.launcher),
            listen=start.listen,
        )

    def _patience(self) -> float:
        """Seconds that a loop is waited for."""
        first = not self.starter.setups and not self.budget.strict
        return LONGEST_SETUP if first else max(0.0, self.budget.left())

    def _found(self, found: messages.Found, setup: float) -> None:
        """The loop is known: lay out the race and the plan."""
        step = schedule.typical_step(found.step_seconds, found.num_workers, found.period)
        self.measured = Measurements(found)
        self.race = Race(self.measured, self.request.only, self.request.skip)
        if not self.budget.strict:
            self.budget.forgive(setup)
            total = self.budget.elapsed() + DEFAULT_BUDGET + (ALLOWANCE if self.request.wishes is not None else 0.0)
            self.budget.end_by(total, self._ending(total))
        allowance = reserve(self.budget) if self.request.wishes is not None else None
        self.plan = schedule.plan(self.budget.left(), setup, step, self.race.size(), self.request.sessions)
        costs = Costs(schedule.shape_of(found), step, self.plan.window_seconds, brief=True)
        telling = Telling(self.measured, self.budget, self.progress)
        self.prober = Prober(self.measured, costs, self.budget, telling)
        self.prober.spare = 0.0 if allowance is None else allowance.seconds
        if self.request.wishes is not None and allowance is not None:
            self.explainer = Explainer(
                self.measured,
                self.prober,
                self.budget,
                self.progress,
                self.request.wishes,
                allowance,
                sampler=self.outside.sampler,
                watch=self.outside.watch,
            )
        self.found = found
        what = f"{found.device.upper()}, {1000 * step:.3g} ms a step"
        if found.has_loader:
            what += f", {found.loader_type} with num_workers={found.num_workers}"
        if self.ranks:
            what += f", {words.ranks_text(self.ranks)}"
        self.progress.note(f"Found the training loop: {what}")

    def _work(self, session: Session) -> None:
        """Windows until this session's share of the time is used."""
        self._look_first(session)
        others = max(0, self.plan.sessions - self._held() - 1)
        ends = self.budget.now() + schedule.session_share(
            self.budget.left(), others, self.starter.setup(), self._least_measuring()
        )
        self._burn_in(session)
        if not self.ceilings_known and self.race.found.has_loader:
            self._measure_ceilings(session)
        exploring = self.race.chosen_after == 0
        first = True
        while True:
            left = min(ends - self.budget.now(), self.budget.left())
            if exploring and not self.race.explored():
                left = max(left, EXPLORING_SHARE * self.budget.seconds - self.budget.spent())
            probes = self.race.probes(session.number, first_block=first)
            if exploring and not first and self._goes_on():
                # Repeating what is known here would take the time of another process, which would tell more.
                probes = self.race.news(probes)
            if first and not probes and not self._has_baseline():
                # Nothing can be changed in this loop from outside; how fast it is, and why, is told all the same.
                for _ in range(LEAST_WINDOWS):
                    self.prober.measure(session, probe(BASELINE, {}))
            if not probes or (not first and left < 2.5 * self.prober.costs.baseline()):
                break
            counts = Counter(window.label for window in self.measured.windows if ev.usable(window))
            self._run_block(
                session,
                schedule.fitting(probes, self.prober.costs.seconds, self.prober.costs.baseline(), left, counts),
            )
            if not self.race.chosen_after and self.race.explored():
                self.race.choose(session.number)
            first = False
        if not self.race.chosen_after:
            self.race.choose(session.number)
        if exploring:
            # Chosen by this session alone, so that those to come confirm a choice that they did not make.
            self.race.climb()
            if self.request.sessions is None:
                self._plan_the_rest(session)
            if self.explainer is not None and not self.explainer.done:
                if not self._wanted():
                    self.explainer.allowance.inherit()
                self.explainer.explain(session, self.starter.setup())

    def _look_first(self, session: Session) -> None:
        """Where the time goes, before anything else: it needs nothing to be compared with, and whatever ends the
        examination, the report then says why the training is slow. Where it takes little, the process warms up before,
        else while it is looked at."""
        if self.explainer is None or self.explainer.begun():
            return
        if not self._burn_in_is_dear():
            self._burn_in(session)
        self.explainer.begin(session)

    def _plan_the_rest(self, session: Session) -> None:
        """How many processes more, now that it is known what they will measure and what that takes."""
        cost = self.prober.costs.baseline()

        def block(settled: bool) -> float:
            probes = self.race.probes(session.number + 1, first_block=True, settled=settled)
            return schedule.block_seconds(probes, self.prober.costs.seconds, cost)

        blocks = block(settled=False), block(settled=True)
        self.plan = schedule.confirming(
            self.plan,
            self._held(),
            self.budget.left(),
            self.starter.setup(),
            cost,
            blocks,
            news=self.race.unmeasured(),
        )

    def _goes_on(self) -> bool:
        """Whether it is left to us how many processes there are, and there is time for another."""
        return self.request.sessions is None and self.budget.left() > self._least_session()

    def _run_block(self, session: Session, probes: list[Probe]) -> None:
        self.prober.block += 1
        windows = self.measured.windows
        follows = bool(windows) and windows[-1].label == BASELINE and windows[-1].session == session.number
        for each in schedule.block(probes, probe(BASELINE, {}), self.generator, after_baseline=follows):
            cost = self.prober.costs.seconds.get(each.key, self.prober.costs.baseline())
            if self.budget.left() < 0.5 * cost and self._has_baseline():
                raise OutOfTime
            if self.race.alive(each):
                self.prober.measure(session, each)

    def _burn_in_is_dear(self) -> bool:
        """Whether one window to warm up would take more than warming up may. Steps that long have warmed up within
        those in which the loop was found."""
        seconds = self.prober.costs.measuring(probe(BURN_IN, {}), self.plan.window_seconds / 2)
        seen = sum(self.here.step_seconds)
        return seen >= burn_in.WARMED_UP_SECONDS and seconds > BURN_IN_SHARE * self.plan.session_seconds

    def _burn_in(self, session: Session) -> None:
        """Baseline windows, thrown away, until the speed is level."""
        if self.warm or not burn_in.needed(self.here, self.prober.costs) or self._burn_in_is_dear():
            return
        # Or as warm as it gets: nobody warms this process up again.
        self.warm = burn_in.burn_in(
            lambda: self.prober.measure(session, probe(BURN_IN, {}), seconds=self.plan.window_seconds / 2),
            most_seconds=BURN_IN_SHARE * self.plan.session_seconds,
            now=self.budget.now,
        )

    def _measure_ceilings(self, session: Session) -> None:
        """What no fix can pass, measured first, so that fixes that cannot pay are not tried."""
        self.ceilings_known = True
        self.prober.block += 1
        self.progress.stage("Measuring ceilings")
        self.prober.measure(session, probe(BASELINE, {}))
        self.prober.measure(session, probe(labels.REPLAY, replay.SETTING))
        self.prober.measure(session, probe(labels.LOADER_ONLY, {}, mode="loader_only"))
        self.prober.measure(session, probe(BASELINE, {}))
        self.race.heed_ceilings()

    # -- why ------------------------------------------------------------------------------------------------------

    def _complete_claims(self) -> None:
        """Where something seems to help, the processes that its claim still lacks go before the lines: the place to
        look is known by then, and what it would bring is not."""
        explainer = self.explainer
        lacking = schedule.LEAST_SESSIONS - self._held() if self._has_baseline() else 0
        if explainer is None or not explainer.done or lacking <= 0 or self.request.fresh_runs:
            return
        if self._wanted() and self.race.promising():
            best = self.race.probes(self.starter.number + 1, first_block=True)[0].key
            cost = self._least_session() + self.prober.costs.seconds.get(best, 0.0)
            if self.budget.left() + explainer.allowance.left() > lacking * cost:
                with explainer.allowance.lent():
                    self._sessions()

    def _explain_the_rest(self) -> None:
        """What wants a process of its own: lines, and everything else where no session got to it."""
        explainer = self.explainer
        if explainer is None or not self._has_baseline():
            return
        if not self._wanted() or self.budget.left() <= self._least_session():
            explainer.allowance.inherit()
        if not explainer.done:
            self._explain_in_a_session(explainer, self._explain_all)
        self._explain_in_a_session(explainer, explainer.lines)

    def _use_the_rest(self) -> None:
        """Processes that a claim still lacks, where explaining took less than was set apart for it."""
        if self.explainer is not None and self._has_baseline() and not self.request.fresh_runs:
            self.explainer.allowance.give_back()
            self._sessions()

    def _explain_all(self, session: Session) -> None:
        if self.explainer is not None:
            self.explainer.begin(session)
            self.explainer.explain(session, self.starter.setup())

    def _explain_in_a_session(self, explainer: Explainer, gather: Callable[[Session], None]) -> None:
        if explainer.wants_session(self.starter.setup()):
            with explainer.allowance.charged():
                self._in_session(gather)

    # -- fresh runs ------------------------------------------------------------------------------------------------

    def _fresh_runs(self) -> None:
        """Every probe a run of the entrypoint of its own; a round of them counts as one session."""
        self._fresh_run(probe(BASELINE, {}), 0)
        cost = 0.0
        for number in range(1, self.plan.sessions + 1):
            self.prober.block += 1
            probes = self.race.probes(number, first_block=True)
            for each in schedule.block(probes, probe(BASELINE, {}), self.generator):
                if self.budget.left() < cost:
                    raise OutOfTime
                begun = self.budget.now()
                if self.race.alive(each):
                    self._fresh_run(each, number)
                    cost = self.budget.now() - begun
            if number == 1:
                self.race.choose(number)
                self.race.climb()

    def _fresh_run(self, each: Probe, number: int) -> None:
        def measure(session: Session) -> None:
            self._look_first(session)
            self._burn_in(session)
            self.prober.measure(session, each)
            self.measured.windows[-1] = replace(self.measured.windows[-1], session=number)

        self._in_session(measure)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _has_baseline(self) -> bool:
        return self.found is not None and self.prober.has_baseline()

    def _has_reason(self) -> bool:
        """Whether it is known where the time of the training as written goes."""
        return self.explainer is not None and self.explainer.explanation.phases is not None

    def _give_up_on(self, over: SessionOver) -> None:
        """Raise the right error where a session ended before the training as written could be measured."""
        if self._has_baseline():
            return
        if self.explainer is not None and self.explainer.busy:
            # Timers or py-spy may have broken what would have gone on without: the next process is measured at once.
            self.explainer.busy = False
            return
        if over.ours:
            raise outcome.guest_failed(over)
        if over.apart:
            raise outcome.ranks_apart(over)
        if over.crashed:
            raise outcome.entrypoint_failed(over)
        if self.found is None:
            raise outcome.no_training(self.starter.farewell, over.tail)

    def _unmeasured(self) -> DoctorError:
        """Why the training as written was not measured."""
        ended = [self.starter.endings.get(record.number) is Ending.END for record in self.starter.records]
        if self.found is not None and (all(ended) or self.budget.left() > self._least_session()):
            return outcome.no_training(self.starter.farewell, "")
        if self.found is None:
            return outcome.not_found(self.budget.total or self.budget.elapsed(), self.starter.seen)
        return outcome.out_of_time(self.budget.total or self.budget.elapsed())

    def _outcome(self) -> Outcome:
        self.progress.stage("Writing the report")
        if not self._has_baseline() and not self.interrupted:
            self.error = self.error or self._unmeasured()
            if not self._has_reason():
                raise self.error
        starter, last, keeper = self.starter, self.starter.last.get(BASELINE), self.keeper
        result = outcome.result(
            outcome.Gathered(
                argv=self.request.discretion.words(self.request.start.entrypoint()),
                repeat=self.request.repeat(self.seed),
                seed=self.seed,
                budget=self.request.budget or DEFAULT_BUDGET,
                seconds=self.budget.elapsed(),
                fresh_runs=self.request.fresh_runs,
                interrupted=self.interrupted,
                unmeasured=self.error.sentence if self.error is not None else "",
                records=starter.records,
                endings=starter.endings,
                ranks=self.ranks,
                missing_ranks=[] if last is None else last.session.company.missing,
                hello=None if last is None else last.session.hello,
                race=self.race if self.found is not None else None,
                has_baseline=self._has_baseline(),
                explanation=self.explainer.explanation if self.explainer is not None else None,
                protection=None if keeper is None else keeper.told(),
                lost_files=[] if keeper is None else keeper.lost,
                source=self.request.discretion.source,
            )
        )
        result = self.request.discretion.document(result)
        if self.error is not None:
            return Outcome(result, self.error.exit_code, self.error)
        return Outcome(result, Exit.INTERRUPTED if self.interrupted else Exit.DONE)
