"""What the next block of windows holds: everything that fits or, where time is scarce, the likeliest to pay first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bottleneck_doctor.documents.labels import BASELINE, CONTROL, key_of
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine import curve, going_on, likeliest, time_wanted
from bottleneck_doctor.examine.lifetime import Lifetime
from bottleneck_doctor.examine.selection import WORTH_IT, Selection
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.schedule import Plan, Probe
from bottleneck_doctor.measure.starter import Starter
from bottleneck_doctor.measure.supply import WAITING

EXPLORING_SHARE = 0.45
"""Part of the budget that the first session may take to measure every setting once."""
LEAST_WINDOWS = 3
"""Windows that a session needs at least: a setting between two baselines."""
LEAST_TRIED = 4
"""Settings that the first process tries at least, if there is time: enough to see what goes together."""
LEAST_TRIED_IF_SCARCE = 3
"""The same if time is scarce: with steps of seconds, each takes as long as a start, and the others have their turn in
later processes."""
EXPLORED = 20.0
"""Seconds for which the first process goes on trying if it knows a setting with a large gain, or as long as a start
takes. Then other processes confirm that setting, and try the rest, where windows cost the same."""
OFTEN_ENOUGH = 2
"""Windows of what leads by far in a process. Processes differ by more than the windows of one do."""
STEADY = 0.08
"""Spread of windows of the same training up to which their length is right, as a standard deviation of logs."""
FEW_CONTROLS = 3
"""So many comparisons of windows as written it takes to know their spread."""
MOST_LONGER = 3.0
LONGEST_WINDOW = 4.0
"""Where windows differ more than that, they may become longer: up to so many times, and up to so many seconds."""
GROUP_SECONDS = 8.0
"""Most seconds of windows between two windows as written while settings are tried, unless a single one takes longer:
what they show decides what is tried next."""


class Fitting:
    """Chooses the probes of blocks. `sessions`: how many processes the user asked for; None if doctor decides.
    `lifetime`: how long processes train that end by themselves."""

    def __init__(
        self, selection: Selection, costs: Costs, starter: Starter, sessions: int | None, lifetime: Lifetime
    ) -> None:
        self.scarce: bool | None = None
        """Whether time is too short for a whole block in as many processes as a claim needs; None: not known yet."""
        self._selection = selection
        self._costs = costs
        self._lifetime = lifetime
        self._starter = starter
        self._budget = starter.budget
        self._sessions = sessions
        self._least_sessions = min(sessions or schedule.LEAST_SESSIONS, schedule.LEAST_SESSIONS)
        self._window_seconds = costs.window_seconds
        self._tries_on = False
        self._began = 0.0
        self._session = 0

    def begin(self, session: int) -> None:
        """The first windows of this session are next. Only the first session tells whether time is scarce."""
        self._began = self._budget.now()
        self._session = session
        if self.scarce is None:
            self.scarce = self._is_scarce(session)
        # What the first window takes is only guessed, so it is not cut by a time that holds no comparison anyway.
        compared = LEAST_WINDOWS * self._costs.baseline()
        if not self._selection.measured.has_baseline() and self._budget.left() < compared:
            self.goes_on_trying()

    def _is_scarce(self, session: int) -> bool:
        probes = self._selection.probes(session, first_block=True)
        # What takes long to try is left out where it does not fit, and changes nothing for the rest.
        probes = [each for each in probes if not likeliest.is_dear(each)]
        if not any(map(likeliest.is_candidate, probes)):
            return False
        block = schedule.block_seconds(probes, self._expected(probes), self._costs.baseline())
        sessions = self._least_sessions
        return sessions * block + (sessions - 1) * self._starter.setup() > self._budget.left()

    def _expected(self, probes: Sequence[Probe]) -> dict[str, float]:
        """Seconds that a window of each probe takes: as measured before, or else as expected."""
        costs = self._costs
        return {each.key: costs.seconds.get(each.key) or costs.measuring(each) for each in probes}

    def heed_noise(self) -> None:
        """Make windows longer if those of the training as written differ much, and steps wait for workers: then batches
        come in bursts, and a window of a second holds two of them or three. Whatever else makes windows differ, such as
        other programs, often lasts for seconds. Short windows that take turns see it alike."""
        measured, costs = self._selection.measured, self._costs
        bursts = measured.found.num_workers > 0 and pairing.waiting(measured.windows).get(BASELINE, 0.0) >= WAITING
        pairs = pairing.pairs(measured.windows, measured.epoch_batches)
        if not bursts or costs.epochs or sum(pair.key == CONTROL for pair in pairs) < FEW_CONTROLS:
            return
        longer = (time_wanted.window_spread(pairs) / STEADY) ** 2
        wanted = min(LONGEST_WINDOW, self._window_seconds * min(MOST_LONGER, longer))
        costs.window_seconds = max(costs.window_seconds, wanted)

    def has_chosen(self) -> bool:
        """Whether the number of workers can be chosen before all is tried: it brings a lot, and what faster computing
        brings shows only on top of it."""
        selection = self._selection
        return self._leading() is not None and bool(
            curve.hidden(selection.candidates, selection.measured, selection.best_workers())
        )

    def leads_by_far(self) -> bool:
        """Whether something brings so much that it is confirmed before all else is tried."""
        return self._leading() is not None

    def within_lives(self, plan: Plan, probes: Sequence[Probe], *, asked: bool) -> Plan:
        """The plan for windows of these probes in processes that end by themselves. Windows become as long as it says.
        `asked`: whether more time was asked for."""
        costs, most = self._costs, self._sessions or schedule.MOST_CONFIRMING + 1
        step = self._lifetime.step_seconds(self._selection.measured.windows, costs.baseline_step)
        plan = self._lifetime.planned(plan, len(probes), step, self._starter.setup(), self._may_take(asked=asked), most)
        costs.window_seconds = plan.window_seconds
        costs.heed_life(self._lifetime.steps_compared(step, len(probes)), self._lifetime.steps(step))
        block = schedule.block_seconds(probes, self._expected(probes), costs.baseline())
        self._selection.crowded = self._lifetime.starts(block) > 1
        return plan

    def claim_takes_the_rest(self, *, asked: bool) -> bool:
        """Whether something that is worth an edit leads, and to claim it takes all of the time that is left, so that
        nothing else can be tried before. Each process that it takes starts, and lives for as long as the others did.
        `asked`: whether more time was asked for."""
        leading = going_on.Leading.of(self._selection)
        if leading.setting is None or not leading.is_worth_it or not self._lifetime.lives:
            return False
        another = self._starter.setup() + self._lifetime.seconds
        held = len(self._selection.measured.sessions_by_key().get(key_of(leading.setting), ()))
        return self._may_take(asked=asked) < another + leading.lacking(held) * time_wanted.MARGIN * another

    def _may_take(self, *, asked: bool) -> float:
        """Seconds that are left, with those that may still be asked for."""
        return self._budget.left() + going_on.askable(self._budget, asked=asked)

    def leads_beside_others(self) -> bool:
        """The same, where a process lives for several settings: others are tried while that one is confirmed."""
        windows = (each for each in self._selection.measured.windows if each.session == self._session)
        tried = {each.label for each in windows if each.setting and each.mode == "timed" and pairing.usable(each)}
        return len(tried) > 1 and self.leads_by_far()

    def _leading(self) -> Setting | None:
        """What leads by far; None if nothing does."""
        return self._selection.measured.fastest(likeliest.LARGE)

    def coming(self, probes: Sequence[Probe]) -> dict[str, Setting]:
        """The settings that the next session would measure, by key, as far as there is time for them."""
        late = self._late(probes)
        return {
            each.key: each.as_setting()
            for each in filter(likeliest.is_candidate, probes)
            if each not in late or self.affords(each)
        }

    def _late(self, probes: Sequence[Probe]) -> list[Probe]:
        """Those that take long to try, and were left to later processes."""
        return [each for each in self._selection.news(probes) if likeliest.is_dear(each)]

    def deferred(self, probes: Sequence[Probe], first: bool) -> list[Probe]:
        """A setting that takes long to try, if there is time for it and for another process. `first`: whether a block
        of this process comes first; then it waits."""
        late = self._late(probes)
        return late[:1] if not first and late and self.affords(late[0]) else []

    def tells_enough(self, probes: Sequence[Probe]) -> bool:
        """Whether what leads by far was measured often enough in this process, so that another process tells more:
        twice, if that took as long as a start does."""
        selection = self._selection
        leading = selection.measured.fastest(WORTH_IT) if selection.crowded else self._leading()
        untried = [each for each in selection.news(probes) if not likeliest.is_dear(each)]
        if leading is None or not selection.focused() or any(map(likeliest.is_candidate, untried)):
            return False
        windows = (each for each in selection.measured.windows if each.session == self._session)
        held = sum(window.label == key_of(leading) for window in windows if pairing.usable(window))
        return held >= OFTEN_ENOUGH and self._budget.now() - self._began >= self._starter.setup()

    def left(self, ends: float, *, exploring: bool, asked: bool) -> float:
        """Seconds that a process has left, whose share of the time `ends` then. `asked`: whether more time was asked
        for."""
        budget = self._budget
        left = budget.left() if exploring and self._tries_on else min(ends - budget.now(), budget.left())
        if exploring and not self._selection.explored():
            left = max(left, EXPLORING_SHARE * budget.seconds - budget.spent())
        if exploring and self.scarce:
            left = min(left + going_on.askable(budget, asked=asked), budget.left())
        return min(left, self._lifetime.left(self._costs.baseline_step))

    def goes_on_trying(self) -> bool:
        """Whether there is time now to try what is left in the first process where time is scarce, because it was asked
        for: once."""
        if not self.scarce or self._selection.chosen_after or self._sessions is not None or self._tries_on:
            return False
        self._tries_on = going_on.goes_on_trying(self._selection, self._costs, self._starter)
        return self._tries_on

    def another(self) -> float:
        """Seconds that another block of a process takes at least. A life is planned for what it holds, to the step."""
        return (2.0 if self._lifetime.lives else 2.5) * self._costs.baseline()

    def affords(self, each: Probe) -> bool:
        """Whether there is time to try a setting in a process that stands, and to confirm it in another one."""
        takes = self._expected([each])[each.key]
        least = self._starter.setup() + (LEAST_WINDOWS + 1) * self._costs.baseline()
        return self._budget.left() > 2 * takes + least

    def block(self, probes: list[Probe], left: float, *, exploring: bool, first: bool, asked: bool) -> list[Probe]:
        """The probes that the next block holds, with `left` seconds for it. The first block is never empty.

        The exploring process tries the likeliest to pay first, a few at a time, so that what they show decides what is
        tried next. If time is scarce, it leaves enough for the other processes that a claim needs. `asked`: whether
        more time was asked for.
        """
        news = self._selection.news(probes) if exploring else []
        if news or (exploring and self.scarce):
            return self._tried_next(news or probes, left, first=first, asked=asked)
        return self._within(self._in_turn(probes) if self.scarce else probes, left, self._costs.baseline())

    def _tried_next(self, probes: list[Probe], left: float, *, first: bool, asked: bool) -> list[Probe]:
        """What the exploring process tries next, if there is time for it."""
        measured, baseline = self._selection.measured, self._costs.baseline()
        if not first and self._leading() is not None and self._is_followed():
            probes = [each for each in probes if not likeliest.is_dear(each)]
            if len(measured.tried()) >= (LEAST_TRIED_IF_SCARCE if self.scarce else LEAST_TRIED):
                left = min(left, self._began + max(EXPLORED, self._starter.setup()) - self._budget.now())
        if not probes:
            return []
        if self.scarce:
            left = min(self._left_to_explore(left, asked=asked), self._lifetime.left(self._costs.baseline_step))
        within = self._within(self._in_turn(probes), left, baseline if first else 0.0)
        expected = self._expected(within)
        if not first and expected[within[0].key] + baseline > left:
            return []
        return _group(within, expected)

    def _in_turn(self, probes: Sequence[Probe]) -> list[Probe]:
        selection = self._selection
        leading, waits = self._leading(), pairing.waiting(selection.measured.windows)
        fed = leading is not None and waits.get(key_of(leading), 1.0) < WAITING
        others = pairing.others_always(selection.measured.windows)
        return likeliest.in_turn(
            probes,
            selection.candidates,
            selection.speeds(),
            self._costs.supply,
            selection.found,
            fed=fed,
            others=others,
        )

    def _within(self, probes: Sequence[Probe], left: float, before: float) -> list[Probe]:
        """The probes that `left` seconds hold, by priority, after `before` seconds for a first window as written."""
        measured = self._selection.measured
        counts = Counter(window.label for window in measured.windows if pairing.usable(window))
        if self._selection.crowded:
            # What leads would take every process for itself. Once a claim has what it needs, others have their turn.
            probes = [replace(each, priority=1) if self._has_enough(each, counts) else each for each in probes]
        # What a process came to its end in has had its turn, too, or it would take all of them.
        return schedule.fitting(probes, self._expected(probes), before, left, counts + measured.lost)

    def _has_enough(self, each: Probe, counts: Mapping[str, int]) -> bool:
        """Whether a setting that goes first was measured as often as a claim takes."""
        return each.priority == 0 and counts.get(each.key, 0) >= schedule.LEAST_SESSIONS

    def _is_followed(self) -> bool:
        """Whether another process comes, which can try what this one leaves."""
        least = self._starter.setup() + LEAST_WINDOWS * self._costs.baseline()
        return self._least_sessions > 1 and self._budget.left() > least

    def _left_to_explore(self, left: float, *, asked: bool) -> float:
        """The part of the `left` seconds that the exploring process may take, so that others have time to measure the
        best of what it found."""
        selection, others = self._selection, max(0, self._least_sessions - 1)
        windows = LEAST_WINDOWS * self._costs.baseline()
        kept = going_on.kept(self._budget, others, self._starter.setup(), windows, asked=asked)
        # If nothing leads by much, no other process has to confirm it yet, so all of the time may go into trying the
        # next settings in this process. And nothing has to be kept for a process that would not fit.
        alone = not self._is_followed() and not going_on.askable(self._budget, asked=asked)
        if self._tries_on or alone or not going_on.Leading.of(selection).is_worth_it:
            return self._budget.left()
        return min(left, self._budget.left() - kept)


def _group(probes: Sequence[Probe], expected: Mapping[str, float]) -> list[Probe]:
    """The first of these probes, as many as are measured between two windows as written, and take little time."""
    group: list[Probe] = []
    for each in probes[: schedule.BASELINE_EVERY]:
        if group and sum(expected[one.key] for one in (*group, each)) > GROUP_SECONDS:
            break
        group.append(each)
    return group
