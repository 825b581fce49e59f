"""Asks for the time that an answer takes, once the first process has shown which setting leads: extends the budget, and
tells the user why. Not used if the user set a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine import telling, time_wanted
from bottleneck_doctor.examine.ladder import WORTH_TRYING
from bottleneck_doctor.examine.lifetime import Lifetime
from bottleneck_doctor.examine.likeliest import LARGE, is_candidate
from bottleneck_doctor.examine.selection import WORTH_IT, Selection
from bottleneck_doctor.explain.explainer import ALLOWANCE_SHARE
from bottleneck_doctor.measure import pairing, schedule
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.costs import COMPARED, Costs
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.measure.starter import Starter

Confirming = Callable[[Sequence[float], Costs, float], float]
"""How many seconds it takes to measure the program with a change made, from the seconds that starts took, what windows
cost, and how many times as fast the change is."""
WITH_WARMING = 4 / 3
"""A process has a setting between two windows as written, and one before them that warms it up."""


def askable(budget: Budget, *, asked: bool) -> float:
    """Seconds that may be asked for once the first process is done; 0 if that was `asked` before."""
    return 0.0 if asked or budget.strict or budget.total is None else max(0.0, time_wanted.LONGEST - budget.total)


def for_pairs(selection: Selection, budget: Budget, *, asked: bool) -> float:
    """Seconds of which some may be asked for pairs of processes, once the first process is done: all that may be asked
    for. None where something leads by much; elsewhere what pairs measure may be most of what helps."""
    return 0.0 if Leading.of(selection).speed >= LARGE else askable(budget, asked=asked)


def kept(budget: Budget, processes: int, start_seconds: float, windows_seconds: float, *, asked: bool) -> float:
    """Seconds that the first process leaves to the others that a claim needs, each of which needs so many for its
    windows. What may be asked for is theirs. It is granted only if it is enough with a margin, and with time for a
    window that warms a process up."""
    spare = askable(budget, asked=asked)
    if not spare:
        return processes * (start_seconds + windows_seconds)
    return max(0.0, processes * _with_margin(start_seconds, windows_seconds) - spare)


def _with_margin(start_seconds: float, windows_seconds: float) -> float:
    """Seconds for which a process has to be granted, with a margin and a window that warms it up."""
    return time_wanted.MARGIN * (start_seconds + WITH_WARMING * windows_seconds)


@dataclass(frozen=True)
class Leading:
    """What leads so far, None if nothing does; how many times as fast it looks; how much windows of the training as
    written differ; how many fixes are tried; and how many processes hold it, None if every one that compared does."""

    setting: Setting | None
    speed: float
    spread: float
    tried: int
    held_by: int | None

    @classmethod
    def of(cls, selection: Selection) -> Leading:
        measured = selection.measured
        setting = measured.fastest(WORTH_TRYING) if selection.promising() else None
        key = labels.key_of(setting) if setting else BASELINE
        spread = time_wanted.window_spread(pairing.pairs(measured.windows, measured.epoch_batches))
        tried = sum(bool(candidate.settings) for candidate in selection.candidates)
        holds = len(measured.sessions_by_key().get(key, ())) if selection.crowded and setting else None
        return cls(setting, selection.speeds().get(key, 1.0), spread, tried, holds)

    @property
    def is_worth_it(self) -> bool:
        """Whether something leads that is worth an edit."""
        return self.setting is not None and self.speed >= WORTH_IT

    def fewest(self) -> int:
        """The fewest processes with which it could be claimed."""
        return time_wanted.fewest_for(self.speed, self.spread, self.tried)

    def lacking(self, held: int) -> int:
        """How many processes its claim still lacks, if so many hold a comparison."""
        return max(0, self.fewest() - (held if self.held_by is None else self.held_by))


def _tried_once(selection: Selection, probes: Sequence[Probe]) -> list[Probe]:
    """Those of the probes that most likely need a window in one process only: where something brings a lot, what was
    not tried yet, but for combinations."""
    if not selection.focused():
        return []
    together = {labels.key_of(setting) for _, setting in selection.ladder.rungs}
    return [each for each in selection.news(probes) if each.key not in together]


def ask_for_time(
    selection: Selection,
    costs: Costs,
    starter: Starter,
    *,
    held: int,
    lifetime: Lifetime,
    sessions: int | None,
    explains: bool,
    confirming: Confirming | None = None,
) -> None:
    """Extend the budget by the time that it takes to be sure of the leading setting, or to be sure that nothing helps.
    Don't extend it if the time is enough, or if even the longest time would bring no answer.

    As long as settings wait for their first window, it is not known what helps. `held`: processes that hold a
    comparison. `lifetime`: how long processes live that end by themselves. Where everything worth measuring does not
    fit into one of them, it takes several. `sessions`: how many the user asked for; None if doctor decides. `explains`:
    whether a part of a budget that the user sets goes to explaining. `confirming`: what it takes to measure the program
    with a change made; time for that is left if a large gain leads, and the claim does not need it.
    """
    budget, setup, baseline, leading = starter.budget, starter.setup(), costs.baseline(), Leading.of(selection)
    setting = leading.setting
    lead = probe(labels.key_of(setting), setting) if setting else probe(BASELINE, {})
    probes = selection.probes(starter.number + 1, first_block=True, settled=setting is not None)
    unknown = setting is None and not selection.explored()
    once = _tried_once(selection, probes)
    again = [each for each in probes if each not in once]
    processes = sessions or time_wanted.processes_for(leading.speed, leading.spread, leading.tried)
    everything = schedule.block_seconds(again, costs.seconds, baseline)
    lives = lifetime.starts(baseline + everything)
    everything += (lives - 1) * setup
    measured, with_lead = held, held if leading.held_by is None else leading.held_by
    if selection.crowded:
        # Each process held a part of it.
        counts = selection.measured.sessions_by_key()
        measured = min((len(counts.get(each.key, ())) for each in again), default=held)
    elif selection.news(again):
        measured = 0
    of_lead = schedule.block_seconds([lead], costs.seconds, baseline)
    # What is tried late may go together with what leads, and it takes another process to show that.
    late = setup + of_lead + schedule.block_seconds(once, costs.seconds, baseline) if once else 0.0

    def wanted(start_seconds: float, fewest: int) -> time_wanted.Wanted:
        return time_wanted.wanted(
            processes,
            (measured, 0 if unknown else with_lead),
            start_seconds,
            baseline,
            (everything + late / max(1, processes - measured), of_lead),
            leading.spread,
            fewest=fewest,
            asked=sessions is not None,
        )

    want = wanted(setup, schedule.LEAST_SESSIONS if sessions else leading.fewest())
    total = budget.total or budget.elapsed() + budget.left()
    longest = time_wanted.LONGEST
    if confirming is not None and leading.speed >= LARGE:
        kept = confirming(_starts(starter), costs, leading.speed)
        if budget.elapsed() + want.least + kept <= longest:
            longest -= kept
    promising = setting is not None or unknown
    more = time_wanted.extension(want, budget.left(), total, promising=promising, longest=longest)
    named = telling.so_far(setting, leading.speed, selection.found.device) if setting else ""
    if more:
        budget.extend(more)
        starter.progress.note(named + telling.longer(want, costs.baseline_step, setup, total + more))
    elif more is None and named:
        share = ALLOWANCE_SHARE if explains else 0.0
        # What is named has to be enough: no start takes longer than the first, whose process does not know its loop.
        first = next(iter(starter.setups.values()))
        whole = wanted(first, schedule.LEAST_SESSIONS)
        needed = time_wanted.budget_for(whole, budget.spent(), first, share)
        # So much may be used without being asked for: something else, such as pairs of processes, has its turn before.
        if needed > time_wanted.LONGEST:
            starter.progress.note(named + telling.too_long(costs.baseline_step, setup, needed))


def goes_on_trying(selection: Selection, costs: Costs, starter: Starter) -> bool:
    """Extend the budget by the time that it takes to try, in the process that stands, what no window has shown yet, and
    tell the user. False where nothing is left to try; where as many processes as a claim lacks fit into ten minutes;
    and where these have no time for a window that would tell something."""
    budget, window, leading = starter.budget, costs.baseline(), Leading.of(selection)
    untried = list(filter(is_candidate, selection.news(selection.probes(starter.number, first_block=True))))
    left, room = max(0.0, budget.left()), askable(budget, asked=False)
    # As much as is asked for: if that were less here, time that is not asked for would be used by nobody.
    another = _with_margin(starter.setup(), COMPARED * window)
    held = len(selection.measured.comparing()) if leading.is_worth_it else 0
    if leading.lacking(held) * another <= left + room:
        return False
    wanted = time_wanted.MARGIN * schedule.block_seconds(untried, costs.seconds, window)
    more = min(room, wanted - left)
    # Behind a window as written, a setting takes two windows. Without one, that window is worth its time by itself.
    least = (COMPARED - 1 if selection.measured.has_baseline() else 1) * window
    if budget.total is None or not untried or more <= 0 or left + more < least:
        return False
    budget.extend(more)
    starter.progress.note(telling.goes_on_trying(len(untried), costs.baseline_step, starter.setup(), budget.total))
    return True


def decides_confirming(
    selection: Selection, costs: Costs, starter: Starter, takes: Confirming, probes: Sequence[Probe], explaining: float
) -> bool:
    """Whether there is time to measure the program with the leading change made, but no longer once another process has
    measured the `probes`. `explaining`: seconds that explaining may still take."""
    budget = starter.budget
    ends = budget.total if budget.strict and budget.total is not None else time_wanted.LONGEST
    left = ends - budget.elapsed() - explaining
    another = starter.setup() + schedule.block_seconds(probes, costs.seconds, costs.baseline())
    needed = takes(_starts(starter), costs, Leading.of(selection).speed)
    return left - another < needed <= left


def _starts(starter: Starter) -> list[float]:
    """Seconds that starts took, and will take if there was but one: later ones know the loop."""
    known = list(starter.setups.values())
    return known if len(known) > 1 else [*known, starter.setup(), starter.setup()]
