"""What an examination measures in one session: ceilings, then blocks of windows, and the choice of what is measured
further."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.examine import going_on, likeliest, looks
from bottleneck_doctor.examine.beside import Beside
from bottleneck_doctor.examine.fitting import LEAST_WINDOWS, Fitting
from bottleneck_doctor.examine.interim import Interim
from bottleneck_doctor.examine.lifetime import Lifetime
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.examine.warming import Warming
from bottleneck_doctor.explain.explainer import Explainer
from bottleneck_doctor.knobs import replay
from bottleneck_doctor.measure import burn_in, schedule, steps_left
from bottleneck_doctor.measure.budget import Budget, NotBegun, OutOfTime
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.quiet import Quiet
from bottleneck_doctor.measure.schedule import Plan, Probe, probe
from bottleneck_doctor.measure.starter import Live, Side, Starter
from bottleneck_doctor.system.progress import Progress


class Blocks:
    """Measures in sessions of one loop. `plan`: made again once it is known what is worth measuring. `sessions`: how
    many the user asked for; None if doctor decides. `confirming`: what it takes to measure the program with a change
    made; None if that does not follow."""

    def __init__(
        self,
        selection: Selection,
        prober: Prober,
        plan: Plan,
        starter: Starter,
        explainer: Explainer | None,
        *,
        sessions: int | None,
        generator: random.Random,
        confirming: going_on.Confirming | None = None,
    ) -> None:
        self.beside = Beside(selection, starter, generator)
        self.selection = selection
        self.prober = prober
        self.plan = plan
        self.explainer = explainer
        self.interim = Interim(selection, prober.costs, starter, explainer, confirming)
        self._asked = False
        self._measured = selection.measured
        self.warming = Warming(selection.measured, prober, lambda: self.plan, starter.budget.now, generator)
        self._quiet = Quiet(selection.measured, prober, starter)
        self._starter = starter
        self._budget: Budget = starter.budget
        self._progress: Progress = starter.progress
        self.lifetime = Lifetime(starter.budget.now)
        self._sessions = sessions
        self._confirming = confirming
        self._generator = generator
        self._ceilings_known = False
        self._fitting = Fitting(selection, prober.costs, starter, sessions, self.lifetime)

    def wanted(self) -> bool:
        """Whether another session is planned, and would measure something."""
        return self.interim.sure_after is None and self._planned()

    def _planned(self) -> bool:
        return self.held() < self.plan.sessions and any(map(likeliest.is_candidate, self._next_probes()))

    def _next_probes(self) -> list[Probe]:
        """What the next session would measure first."""
        return self.selection.probes(self._starter.number + 1, first_block=True)

    def held(self) -> int:
        """Sessions that hold a comparison."""
        return len(self._measured.comparing())

    def least_session(self) -> float:
        """Seconds that another session needs at least to measure something."""
        return self._starter.setup() + self._least_measuring()

    def has_time(self) -> bool:
        """Whether there is time for another session. If not, more is asked for: the script may have come to its end
        before the session could do that."""
        if self._budget.left() <= self.least_session() and self.held():
            self._ask_for_time()
        return self._budget.left() > self.least_session()

    def _least_measuring(self) -> float:
        """Seconds of windows that a session at its loop needs at least to measure something."""
        return (LEAST_WINDOWS if self.prober.has_baseline() else 1) * self.prober.costs.baseline()

    # -- enough ------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Take an interim look: is what is known enough? No look is taken if no further session would come anyway: then
        the examination ends whatever the figures are, and the judge need not be stricter because of a look."""
        more = self._sessions is None and self._planned() and self._budget.left() > self.least_session()
        if self.interim.sure_after is None and not more:
            return
        if self.held() < looks.FIRST:
            self.interim.is_not_enough()
            return
        probes = self._next_probes()
        evidence = looks.evidence_of(self.selection, self.beside)
        self.interim.look(evidence, self._fitting.coming(probes), probes, more=more)

    def look_on(self, as_written: Side, patience: Callable[[], float]) -> None:
        """Take an interim look. Then measure pairs of processes, if they promise more than all that was measured."""
        self.look()
        if self.beside.comes_first():
            self.measure_beside(as_written, patience)

    def measure_beside(self, as_written: Side, patience: Callable[[], float]) -> None:
        """Measure pairs of processes, if time was reserved for them. Then take another interim look, which includes
        their results. `patience`: as for `Starter.live`. Raises `OutOfTime`."""
        try:
            self.beside.measure(as_written, patience)
        finally:
            if self.interim.sure_after is not None and self.beside.observations:
                self.look()
        self.interim.tell_sure()

    def stand_at(self, live: Live) -> None:
        """A new process stands at its loop. Its windows fit into its life, if it is known how many steps that has."""
        costs = self.prober.costs
        if not self.lifetime.lives:
            window = costs.usual_steps(costs.size(probe(BASELINE, {}), costs.window_seconds))
            costs.heed_life(steps_left.most_steps(live.steps_left, window, steps_left.EXAMINED), live.steps_left)
        self.warming.stand_at(live.loop, briefly=not self.lifetime.lives and costs.most_steps is not None)
        self.lifetime.begins(lambda: sum(live.session.progress().values()))

    # -- in a session --------------------------------------------------------------------------------------------------

    def work(self, live: Live) -> None:
        """Measure windows until this session's share of the time is used. If the whole time is over before everything
        was measured once, ask for more, based on what is known by then. Raises `SessionOver` and `OutOfTime`."""
        try:
            self._work(live)
        except OutOfTime as out:
            if isinstance(out, NotBegun) and self._fitting.goes_on_trying():
                self.work(live)
                return
            if self._asked or self._budget.strict or not self.held():
                raise
            self._ask_for_time()
            if self._budget.left() <= self.least_session():
                raise

    def _work(self, live: Live) -> None:
        self.look_first(live)
        supply = self.prober.costs.supply
        if self.selection.chosen_after == 0 and supply is not None:
            self.selection.heed_supply(supply)
        others = max(0, self.plan.sessions - self.held() - 1)
        ends = self._budget.now() + schedule.session_share(
            self._budget.left(), others, self._starter.setup(), self._least_measuring()
        )
        if self.selection.crowded:
            ends = math.inf  # A life is short, and the next one costs a start.
        if self.selection.chosen_after == 0:
            self.beside.look_at(live)
        self.warming.warm_up(live)
        self._fitting.begin(live.session.number)
        scarce = self._fitting.scarce
        needs_ceilings = self.selection.found.has_loader and not self.selection.without_ceilings
        if needs_ceilings and not self._ceilings_known and not scarce:
            self._measure_ceilings(live)
        exploring = self.selection.chosen_after == 0
        if exploring and self.explainer is not None:
            # After the first timed windows, because they show whether other programs disturbed the window of phases.
            explained = self.explainer.explanation
            self.selection.heed_explained(self.explainer.shares_as_written(), explained.sampling)
        if exploring and scarce:
            self._progress.stage("Measuring the most promising settings first")
        first = True
        while True:
            left = self._fitting.left(ends, exploring=exploring, asked=self._asked)
            probes = self.selection.probes(live.session.number, first_block=first)
            if exploring and not first and self._sessions is None and self._budget.left() > self.least_session():
                # Repeating windows here would take time from another process, which would tell more.
                probes = self.selection.news(probes)
            if first and not probes:
                # No setting applies to the loop as found. Its speed, and the reason for it, are reported all the same,
                # and what its windows show between epochs may give a setting a reason.
                for _ in range(0 if self.prober.has_baseline() else LEAST_WINDOWS):
                    self.prober.measure(live.session, probe(BASELINE, {}))
                self.selection.heed_windows()
                probes = self.selection.probes(live.session.number, first_block=True)
            late = [] if exploring else self._fitting.deferred(probes, first)
            if not exploring and not late and self._fitting.tells_enough(probes) and self._planned():
                break
            fitting = late
            if probes and not late and (first or left >= self._fitting.another()):
                fitting = self._fitting.block(probes, left, exploring=exploring, first=first, asked=self._asked)
            if not fitting and self._fitting.goes_on_trying():
                continue
            if not fitting:
                break
            self._run_block(live, fitting)
            self.selection.heed_windows()
            if scarce:
                self.selection.heed_ceilings()
            if exploring:
                self._fitting.heed_noise()
            if not self.selection.chosen_after and (self.selection.explored() or self._fitting.has_chosen()):
                self.selection.choose(live.session.number)
            first = False
        chooses = self._fitting.leads_beside_others() or self._fitting.claim_takes_the_rest(asked=self._asked)
        waits = self.lifetime.ends_soon(self.selection) and not chooses
        if exploring and not self.selection.chosen_after and not waits:
            self.selection.choose(live.session.number)
        if exploring and self.selection.chosen_after:
            # Only this session chooses, so that the later ones confirm a choice that they did not make.
            self.selection.climb(one_more=not scarce)
            spare = going_on.for_pairs(self.selection, self._budget, asked=self._asked)
            self.beside.set_apart(live, self.prober.costs, alone=not self.wanted(), spare=spare)
            self._ask_for_time()
            if self._sessions is None:
                self._plan_the_rest(live)
            if self.explainer is not None and not self.explainer.done:
                if not self.wanted():
                    self.explainer.allowance.inherit()
                self.explainer.explain(live, self._starter.setup())
        else:
            self._revise_ladder()

    def _revise_ladder(self) -> None:
        """Extend the combinations by what this session tried for the first time, or leave out what brought nothing, as
        long as there are the sessions that a claim on the new ones needs."""
        coming = self.plan.sessions - self.held()
        grew = coming >= looks.FIRST and self.selection.climb_on()
        if not grew and coming >= schedule.LEAST_SESSIONS:
            self.selection.ladder.lighten(self._measured, self.selection.chosen_after)

    def script_ended(self, still: float) -> None:
        """The script came to its end by itself, or made no step for the last `still` seconds, as in a long evaluation.
        So the windows of later processes have to fit into such a life."""
        self.lifetime.ended(still, self.prober.lived)
        if not self.selection.chosen_after:
            self.plan = self._fitting.within_lives(self.plan, self._next_probes(), asked=self._asked)
            if self._fitting.leads_by_far() or self._fitting.claim_takes_the_rest(asked=self._asked):
                # Trying everything once would take processes in which it could be confirmed.
                self.selection.choose(self._starter.number)
                self.selection.climb()

    def look_first(self, live: Live) -> None:
        """Look where the time goes, before anything else. This needs no comparison, so the report says why the training
        is slow even if the examination ends early. The process warms up before, if that takes little time. If steps
        are long or a warm-up window would take too much time, these windows are the warm-up."""
        if self.explainer is None or self.explainer.begun():
            return
        costs, dear = self.prober.costs, self.warming.is_dear()
        if costs.baseline_step < burn_in.LONG_STEP and not dear:
            self.warming.warm_up(live)
        self.explainer.begin(live, at_once=dear and costs.has_long_steps)

    def _ask_for_time(self) -> None:
        """Ask for more time if the user set no budget. Only once, so that the total that is shown changes only once."""
        if self._asked or self._budget.strict or not self.wanted():
            return
        self._asked = True
        going_on.ask_for_time(
            self.selection,
            self.prober.costs,
            self._starter,
            held=self.held(),
            lifetime=self.lifetime,
            sessions=self._sessions,
            explains=self.explainer is not None,
            confirming=self._confirming,
        )

    def _plan_the_rest(self, live: Live) -> None:
        """Plan how many more processes there are, now that it is known what they will measure and what that takes."""
        cost = self.prober.costs.baseline()

        def block(settled: bool) -> float:
            probes = self.selection.probes(live.session.number + 1, first_block=True, settled=settled)
            return schedule.block_seconds(probes, self.prober.costs.seconds, cost)

        blocks = block(settled=False), block(settled=True)
        self.plan = schedule.confirming(
            self.plan,
            self.held(),
            self._budget.left(),
            self._starter.setup(),
            cost,
            blocks,
            news=self.selection.unmeasured(),
        )

    def _run_block(self, live: Live, probes: list[Probe]) -> None:
        self.prober.block += 1
        windows, costs = self._measured.windows, self.prober.costs
        follows = bool(windows) and windows[-1].label == BASELINE and windows[-1].session == live.session.number
        # So the likeliest has been measured between two baselines even if the time ends before the block does.
        parts = [probes[:1], probes[1:]] if self._fitting.scarce and len(probes) > 1 else [probes]
        order = schedule.blocks(parts, probe(BASELINE, {}), self._generator, after_baseline=follows)
        for each in order:
            if self._budget.left() < 0.5 * costs.seconds.get(each.key, costs.baseline()) and self.prober.has_baseline():
                raise NotBegun
            compared = bool(windows and windows[-1].session == live.session.number and windows[-1].setting)
            if compared and not self.lifetime.holds(costs.usual_steps(costs.size(each, costs.window_seconds))):
                return  # The script would come to its end in it, or wait for its own evaluation.
            if self.selection.alive(each):
                self._quiet.measure(live.session, each)
            if each.key == BASELINE:
                self._tell_claim()

    def _tell_claim(self) -> None:
        """Tell a large gain once windows as written stand around it in as many processes as its claim needs."""
        untold = self._sessions is None and self.interim.claimed_after is None
        if untold and self.held() >= looks.FIRST and self.selection.focused():
            self.interim.tell_claim(looks.evidence_of(self.selection, self.beside))

    def _measure_ceilings(self, live: Live) -> None:
        """Measure what no fix can exceed. This comes first, so that fixes that cannot pay are not tried."""
        self._ceilings_known = True
        self.prober.block += 1
        self._progress.stage("Measuring training without loading, and loading alone")
        as_written, loads = probe(BASELINE, {}), probe(labels.LOADER_ONLY, {}, mode="loader_only")
        for each in (as_written, probe(labels.REPLAY, replay.SETTING), loads, as_written):
            self.prober.measure(live.session, each)
        self.selection.heed_ceilings()
