"""The order of an examination: discover, burn in, ceilings, probe, choose, and again in fresh processes.

The edge where clocks, processes and the pure rooms meet. `examine` runs sessions until the plan or the budget is done
and hands what was gathered to `judge`. Whatever ends it early, what was learnt is returned.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import secrets
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from bottleneck_doctor import evidence as ev
from bottleneck_doctor import judge, launch, outcome, schedule
from bottleneck_doctor.discretion import Discretion
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.explain import Explainer, Wishes, reserve
from bottleneck_doctor.interrupt import terminate_as_interrupt
from bottleneck_doctor.monitor import Watch
from bottleneck_doctor.prober import BURN_IN, CAME_TO_ITS_END, Clock, OutOfTime, Prober, SessionOver, await_event, ended
from bottleneck_doctor.progress import Progress
from bottleneck_doctor.protection.keeper import Keeper, protecting
from bottleneck_doctor.race import Race
from bottleneck_doctor.render import words
from bottleneck_doctor.result import Rank, Result, SessionRecord
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.schedule import BASELINE, Plan, Probe, probe
from bottleneck_doctor.session import Command, Session
from bottleneck_doctor.start import Start

DEFAULT_BUDGET = 180.0
"""Seconds for an ordinary script; the first set-up, which may have to make caches, comes on top."""
LONGEST_SETUP = 600.0
"""Seconds that the first set-up may take when the user set no budget."""

EXPLORING_SHARE = 0.45
"""Part of the budget that the first session may take to measure every setting once."""

BURN_IN_LEVEL = 0.05
"""Two windows in a row whose speeds differ by less than this are level."""
BURN_IN_WINDOWS = 3
BURN_IN_SHARE = 0.1
"""Part of a session's time that warming up may take."""
WARMED_UP_SECONDS = 1.0
"""Where windows are whole epochs, the rest of the epoch in which the loop was found warms up if it is this long."""
LEAST_WINDOWS = 3
"""Windows without which a session says nothing: a setting between two baselines."""
MOST_DEAD_SESSIONS = 3
MOST_TIMES_APART = 2
"""Ranks that came apart in as many processes will do so in the next."""
SECONDS_BETWEEN_STARTS = 1.05
"""Programs that name folders by the second collide when two starts fall into one."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for. `budget` in seconds; None leaves it to us."""

    start: Start
    output: Path
    budget: float | None = None
    fresh_runs: bool = False
    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    sessions: int | None = None
    seed: int | None = None
    verbose: bool = False
    wishes: Wishes | None = None
    """What is wanted beside speedups; None: nothing that explains them."""
    discretion: Discretion = field(default_factory=Discretion)
    """What no output may tell."""

    def repeat(self, seed: int) -> list[str]:
        """The command that does the same again, with what is secret masked: it has to be filled in."""
        command = ["run", "--seed", str(seed)]
        if self.budget is not None:
            command += ["--budget", f"{self.budget:g}s"]
        if self.output != Path("."):
            command += ["-o", str(self.output)]
        if self.wishes is not None and self.wishes.rate != Wishes.rate:
            command += ["--rate", str(self.wishes.rate)]
        for option, is_set in (
            ("--fresh-runs", self.fresh_runs),
            ("--no-explain", self.wishes is None),
            ("--native", self.wishes is not None and self.wishes.native),
            ("--no-source", not self.discretion.source),
        ):
            command += [option] if is_set else []
        for option, names in (("--only", self.only), ("--skip", self.skip)):
            for name in sorted(names):
                command += [option, name]
        if self.sessions is not None:
            command += ["--sessions", str(self.sessions)]
        return self.discretion.words(self.start.again(*command))


@dataclass(frozen=True)
class Outcome:
    """The result, and the exit code of the command that asked for it."""

    result: Result
    exit_code: int


def examine(request: Request, progress: Progress) -> Outcome:
    """Examine the entrypoint. Raises `DoctorError` where nothing could be measured at all."""
    with terminate_as_interrupt():
        return _Examination(request, progress).run()


class _Examination:
    def __init__(self, request: Request, progress: Progress) -> None:
        self.request = request
        self.progress = progress
        strict = request.budget is not None
        self.clock = Clock(request.budget if request.budget is not None else DEFAULT_BUDGET, strict)
        self.seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
        self.generator = random.Random(self.seed)
        self.keeper: Keeper | None = None
        self.found: messages.Found | None = None
        self.hello: messages.Hello | None = None
        self.farewell: messages.Ended | None = None
        self.ranks: list[Rank] = []
        self.missing_ranks: list[int] = []
        self.records: list[SessionRecord] = []
        self.interrupted = False
        self.number = 0
        self.watch: Watch | None = None
        self.setups: dict[int, float] = {}
        self.last_start = -math.inf
        self.ceilings_known = False
        self.level = False
        self.times_apart = 0
        self.why = ""
        """Why the session that ran last ended."""
        # Made once the loop is found.
        self.race: Race
        self.prober: Prober
        self.explainer: Explainer | None = None

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
        finally:
            if self.keeper is not None:
                self.keeper.close()
        return self._outcome()

    def _sessions(self) -> None:
        """One process after another, a share of the time each, until as many as planned held a block."""
        idle = 0
        while self.found is None or (self._wanted() and self.clock.left() > self._least_session()):
            with self._session() as session:
                before = self._counted()
                try:
                    self._discover(session)
                    self._work(session)
                except SessionOver as over:
                    self._give_up_on(over)
                    self.why = over.why
                    self.times_apart += over.apart
                    if self.times_apart >= MOST_TIMES_APART:
                        return
                idle = 0 if self._counted() > before else idle + 1
            if idle >= MOST_DEAD_SESSIONS:
                return

    @property
    def plan(self) -> Plan:
        """The prober's: known once the loop is found, and made anew once it is known what is worth measuring."""
        return self.prober.plan

    def _counted(self) -> int:
        return sum(ev.usable(window) for window in self.race.windows) if self.found is not None else 0

    def _wanted(self) -> bool:
        return self._held() < self.plan.sessions and bool(self.race.probes(self.number + 1, first_block=True))

    def _held(self) -> int:
        """Sessions that hold a comparison."""
        return len({window.session for window in self.race.windows if ev.usable(window) and window.label != BASELINE})

    def _least_session(self) -> float:
        """Seconds under which another session could hold nothing."""
        return self._setup() + self._least_measuring()

    def _least_measuring(self) -> float:
        """Seconds of windows under which a session that stands at its loop could hold nothing."""
        return LEAST_WINDOWS * self.prober.baseline_cost()

    def _setup(self) -> float:
        """Seconds that another start takes until its loop is found, about. The first may have had caches to make."""
        return min(list(self.setups.values())[-3:])

    # -- one session -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        """A started session, ended and recorded whatever happens."""
        wait = SECONDS_BETWEEN_STARTS - (time.monotonic() - self.last_start)
        if wait > 0:
            time.sleep(wait)
        self.last_start = time.monotonic()
        self.number += 1
        self.why = "told to end"
        self.progress.stage(f"Starting the script (process {self.number})")
        start = self.request.start
        command = Command(
            start.argv(),
            Path.cwd(),
            dict(start.environment),
            launched=bool(start.launcher),
            terminal=sys.stdout.isatty(),
        )
        listen = start.listen or launch.slurm_address(os.environ)
        session = Session(
            command,
            self.number,
            verbose=self.request.verbose,
            listen=listen,
            keeper=self.keeper,
            discretion=self.request.discretion,
        )
        try:
            session.start()
            yield session
        except OSError as error:
            shown = shlex.join(self.request.discretion.words(command.argv))
            raise DoctorError(
                "entrypoint-unstartable",
                f"{shown} can't be started: {error.strerror or error}.",
                "Check the interpreter given by --python, and that this machine can start more processes.",
                Exit.ENTRYPOINT_FAILED,
            ) from error
        except OutOfTime:
            self.why = "the time was over"
            raise
        except KeyboardInterrupt:
            self.why = "interrupted"
            raise
        finally:
            if self.watch is not None:
                self.watch.stop()
                self.watch = None
            session.stop()
            self.farewell = session.farewell or self.farewell
            self.records.append(
                SessionRecord(
                    number=session.number,
                    setup_seconds=self.setups.get(session.number, 0.0),
                    seconds=time.monotonic() - session.started,
                    ended=self.why,
                    other_load=session.load.mean(),
                )
            )

    def _discover(self, session: Session) -> None:
        """Wait until the guest has found the loop."""

        def tick() -> None:
            text = f"Process {self.number}: looking for the training loop"
            self.progress.update(text, self.clock.spent(), self.clock.budget)

        patient = self.found is None and not self.clock.strict
        event = await_event(session, LONGEST_SETUP if patient else max(0.0, self.clock.left()), tick)
        if event is None:
            raise OutOfTime
        if not isinstance(event, messages.Found):
            self.farewell = session.farewell
            raise ended(event)
        self.hello = session.hello or self.hello
        self.ranks = self.ranks or [
            Rank(rank=each.rank, local_rank=each.local_rank, host=each.host) for each in session.ranks
        ]
        self.missing_ranks = session.company.missing
        setup = time.monotonic() - session.started
        self.setups[session.number] = setup
        self.level = schedule.level(event.step_seconds)
        if self.found is None:
            self.clock.free = 0.0 if self.clock.strict else setup
            self._found(event, setup)
        if self.explainer is not None:
            self.watch = self.explainer.watch(session)

    def _found(self, found: messages.Found, setup: float) -> None:
        """The loop is known: lay out the race and the plan."""
        step = schedule.typical_step(found.step_seconds, found.num_workers)
        self.race = Race(found, self.request.only, self.request.skip)
        allowance = reserve(self.clock) if self.request.wishes is not None else 0.0
        plan = schedule.plan(self.clock.left(), setup, step, self.race.size(), self.request.sessions)
        self.prober = Prober(self.race, schedule.shape_of(found), plan, self.clock, self.progress, step)
        self.prober.spare = allowance
        if self.request.wishes is not None:
            self.explainer = Explainer(
                self.race, self.prober, self.clock, self.progress, self.request.wishes, allowance
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
        others = max(0, self.plan.sessions - self._held() - 1)
        ends = time.monotonic() + schedule.session_share(
            self.clock.left(), others, self._setup(), self._least_measuring()
        )
        self._burn_in(session)
        if not self.ceilings_known and self.race.found.has_loader:
            self._measure_ceilings(session)
        exploring = self.race.chosen_after == 0
        first = True
        while True:
            left = min(ends - time.monotonic(), self.clock.left())
            if exploring and not self.race.explored():
                left = max(left, EXPLORING_SHARE * self.clock.budget - self.clock.spent())
            probes = self.race.probes(session.number, first_block=first)
            if exploring and not first and self._goes_on():
                # Repeating what is known here would take the time of another process, which would tell more.
                probes = self.race.news(probes)
            if not probes or (not first and left < 2.5 * self.prober.baseline_cost()):
                break
            counts = Counter(window.label for window in self.race.windows if ev.usable(window))
            self._run_block(
                session,
                schedule.fitting(probes, self.prober.cost_seconds, self.prober.baseline_cost(), left, counts),
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
                self.explainer.explain(session, self._setup())

    def _plan_the_rest(self, session: Session) -> None:
        """How many processes more, now that it is known what they will measure and what that takes."""
        cost = self.prober.baseline_cost()

        def block(settled: bool) -> float:
            probes = self.race.probes(session.number + 1, first_block=True, settled=settled)
            return schedule.block_seconds(probes, self.prober.cost_seconds, cost)

        blocks = block(settled=False), block(settled=True)
        self.prober.plan = schedule.confirming(
            self.plan, self._held(), self.clock.left(), self._setup(), cost, blocks, news=self.race.unmeasured()
        )

    def _goes_on(self) -> bool:
        """Whether it is left to us how many processes there are, and there is time for another."""
        return self.request.sessions is None and self.clock.left() > self._least_session()

    def _run_block(self, session: Session, probes: list[Probe]) -> None:
        self.prober.block += 1
        windows = self.race.windows
        follows = bool(windows) and windows[-1].label == BASELINE and windows[-1].session == session.number
        for each in schedule.block(probes, probe(BASELINE, {}), self.generator, after_baseline=follows):
            cost = self.prober.cost_seconds.get(each.key, self.prober.baseline_cost())
            if self.clock.left() < 0.5 * cost and self._has_baseline():
                raise OutOfTime
            if self.race.alive(each):
                self.prober.measure(session, each)

    def _burn_in(self, session: Session) -> None:
        """Baseline windows, thrown away, until the speed is level."""
        if self.level or (self.prober.epochs and self.prober.epoch_seconds > WARMED_UP_SECONDS):
            return
        begun = time.monotonic()
        last: float | None = None
        for _ in range(BURN_IN_WINDOWS):
            window = self.prober.measure(session, probe(BURN_IN, {}), seconds=self.plan.window_seconds / 2)
            if not window.samples or not window.seconds:
                return
            speed = window.samples / window.seconds
            if last is not None and abs(math.log(speed / last)) < BURN_IN_LEVEL:
                return
            if time.monotonic() - begun > BURN_IN_SHARE * self.plan.session_seconds:
                return
            last = speed

    def _measure_ceilings(self, session: Session) -> None:
        """What no fix can pass, measured first, so that fixes that cannot pay are not tried."""
        self.ceilings_known = True
        self.prober.block += 1
        self.progress.stage("Measuring ceilings")
        self.prober.measure(session, probe(BASELINE, {}))
        self.prober.measure(session, probe(judge.REPLAY, {"replay": True}))
        self.prober.measure(session, probe(judge.LOADER_ONLY, {}, mode="loader_only"))
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
            best = self.race.probes(self.number + 1, first_block=True)[0].key
            cost = self._least_session() + self.prober.cost_seconds.get(best, 0.0)
            if self.clock.left() + explainer.left() > lacking * cost:
                with explainer.lent():
                    self._sessions()

    def _explain_the_rest(self) -> None:
        """What wants a process of its own: lines, and everything else where no session got to it."""
        explainer = self.explainer
        if explainer is None or not self._has_baseline():
            return
        if not explainer.done:
            self._explain_in_a_session(explainer, lambda session: explainer.explain(session, self._setup()))
        self._explain_in_a_session(explainer, explainer.lines)

    def _use_the_rest(self) -> None:
        """Processes that a claim still lacks, where explaining took less than was set apart for it."""
        if self.explainer is not None and self._has_baseline() and not self.request.fresh_runs:
            self.explainer.give_back()
            self._sessions()

    def _explain_in_a_session(self, explainer: Explainer, gather: Callable[[Session], None]) -> None:
        if not explainer.wants_session(self._setup()):
            return
        with explainer.on_the_allowance(), self._session() as session:
            try:
                self._discover(session)
                gather(session)
            except SessionOver as over:
                self.why = over.why

    # -- fresh runs ------------------------------------------------------------------------------------------------

    def _fresh_runs(self) -> None:
        """Every probe a run of the entrypoint of its own; a round of them counts as one session."""
        self._fresh_run(probe(BASELINE, {}), 0)
        cost = 0.0
        for number in range(1, self.plan.sessions + 1):
            self.prober.block += 1
            probes = self.race.probes(number, first_block=True)
            for each in schedule.block(probes, probe(BASELINE, {}), self.generator):
                if self.clock.left() < cost:
                    raise OutOfTime
                begun = time.monotonic()
                if self.race.alive(each):
                    self._fresh_run(each, number)
                    cost = time.monotonic() - begun
            if number == 1:
                self.race.choose(number)
                self.race.climb()

    def _fresh_run(self, each: Probe, number: int) -> None:
        with self._session() as session:
            try:
                self._discover(session)
                self._burn_in(session)
                self.prober.measure(session, each)
                self.race.windows[-1] = replace(self.race.windows[-1], session=number)
            except SessionOver as over:
                self._give_up_on(over)
                self.why = over.why

    # -- the end ---------------------------------------------------------------------------------------------------

    def _has_baseline(self) -> bool:
        return self.found is not None and self.prober.has_baseline()

    def _give_up_on(self, over: SessionOver) -> None:
        """Raise the right error where a session ended before the training as written could be measured."""
        if self._has_baseline():
            return
        if over.ours:
            raise outcome.guest_failed(over)
        if over.apart:
            raise outcome.ranks_apart(over)
        if over.crashed:
            raise outcome.entrypoint_failed(over)
        if self.found is None:
            raise outcome.no_training(self.farewell, over.tail)

    def _outcome(self) -> Outcome:
        if not self._has_baseline() and not self.interrupted:
            ended = [record.ended == CAME_TO_ITS_END for record in self.records]
            if self.found is not None and (all(ended) or self.clock.left() > self._least_session()):
                raise outcome.no_training(self.farewell, "")
            raise outcome.out_of_time(self.clock.spent())
        result = outcome.result(
            outcome.Gathered(
                argv=self.request.discretion.words(self.request.start.entrypoint()),
                repeat=self.request.repeat(self.seed),
                seed=self.seed,
                budget=self.request.budget or DEFAULT_BUDGET,
                seconds=time.monotonic() - self.clock.started,
                fresh_runs=self.request.fresh_runs,
                interrupted=self.interrupted,
                records=self.records,
                ranks=self.ranks,
                missing_ranks=self.missing_ranks,
                hello=self.hello,
                race=self.race if self.found is not None else None,
                has_baseline=self._has_baseline(),
                explanation=self.explainer.explanation if self.explainer is not None else None,
                protection=self.keeper.told() if self.keeper is not None else None,
                lost_files=self.keeper.lost if self.keeper is not None else [],
                source=self.request.discretion.source,
            )
        )
        result = self.request.discretion.document(result)
        return Outcome(result, Exit.INTERRUPTED if self.interrupted else Exit.DONE)
