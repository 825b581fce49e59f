"""Which settings are measured next, and which are out; the choice of the best; the combination ladder.

Pure: windows measured so far come in, probes go out. Ratios used here are rough (`pairing.quick_speeds`): they decide
what is measured, and nothing is claimed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from operator import attrgetter
from typing import Any

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import SamplingProfile, Setting
from bottleneck_doctor.examine import curve, ladder, too_little
from bottleneck_doctor.examine.evidence import TOO_LITTLE, Candidate
from bottleneck_doctor.examine.ladder import WORTH_TRYING
from bottleneck_doctor.examine.likeliest import LARGE
from bottleneck_doctor.fixes import Fix, NotApplicable, catalogue
from bottleneck_doctor.knobs import num_workers, replay
from bottleneck_doctor.measure import kernel_time, schedule
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.measure.supply import HARDLY, Supply
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import words

CLEARLY_LOSING = 0.93
"""A setting below this part of the best speed of its fix is measured no more often than a claim needs."""
WORTH_IT = 1.1
"""If something else brings a lot, no pairs of processes are started for a fix that can't bring this much, and a single
process measures one that does not seem to."""
NO_FASTER_WORKERS = "no number of workers was faster than loading in the main process"
NO_WORKERS = "no number of workers could be measured"
CEILING_SESSIONS = 1
"""Sessions that measure a ceiling. It bounds what fixes can bring, and nothing is claimed from it, so one is enough."""
LEAST_TOLD = 0.0005
"""A smaller share would be shown as 0."""
WORKER_LIMIT = 8
"""Workers that may be tried on any machine; on larger ones, up to four times the usable CPUs."""


class Standing(IntEnum):
    """How well a setting of a fix does so far."""

    LOSING = 0
    """Clearly slower than the best of its fix, or than the training without it."""
    BEHIND = 1
    """Slower than the best of its fix. A fix is judged by its best setting; the others only complete the curve."""
    LEADING = 2
    """The best of its fix, or not measured yet."""
    PROMISING = 3
    """The best of its fix, and it seems to bring something."""


def _standing(speed: float, best: float, without: float) -> Standing:
    """The standing, from the speeds of a setting, of the best setting of its fix, and of training without the fix."""
    if speed < CLEARLY_LOSING * max(without, best):
        return Standing.LOSING
    if speed < best:
        return Standing.BEHIND
    return Standing.PROMISING if speed >= WORTH_TRYING * without else Standing.LEADING


def _priority(standing: Standing, *, chosen: bool, leads: bool) -> int:
    """The priority of a setting. `chosen`: the best ones were chosen. `leads`: it is the fastest, which every answer
    needs, or a part of that."""
    if standing is Standing.LOSING:
        return 3
    if not chosen or standing < Standing.PROMISING:
        return 2
    return 0 if leads else 1


def _with_failures(candidate: Candidate, measured: Measurements) -> Candidate:
    """The candidate, with why settings of it failed or took no effect."""
    out = {}
    for setting in candidate.settings:
        why = measured.out(candidate.key(setting), {**candidate.base, **setting})
        if why is not None:
            out[candidate.key(setting)] = why
    return replace(
        candidate,
        failures={**candidate.failures, **{key: why.reason for key, why in out.items() if not why.idle}},
        idle={key: why.idle for key, why in out.items() if why.idle},
    )


def _candidate(fix: Fix, found: Found, only: frozenset[str], skip: frozenset[str]) -> Candidate:
    candidate = Candidate(fix)
    if fix.id in skip or (only and fix.id not in only):
        candidate.refusal = "left out on request"
        return candidate
    proposal = fix.proposed(found, named=fix.id in only)
    if isinstance(proposal, NotApplicable):
        candidate.refusal = proposal.reason
    else:
        candidate.take(proposal)
    return candidate


def _reconsider(candidates: Sequence[Candidate], measured: Measurements) -> None:
    """Offer the fixes that the loop as found gave no reason for, if what lies between epochs does."""
    for candidate in candidates:
        again = candidate.fix.propose_between
        if again is None:
            continue
        refused = candidate.fix.propose(measured.found)
        if not isinstance(refused, NotApplicable) or candidate.refusal != refused.reason:
            continue
        offer = again(measured.found, measured.collecting_share())
        if not isinstance(offer, NotApplicable):
            candidate.take(offer)


def _knobs_of(candidates: Sequence[Candidate]) -> set[str]:
    """Names of the knobs that windows of these candidates may have."""
    return {name for each in candidates for setting in each.settings for name in setting}


class Selection:
    """The candidates of one examination, and what was decided about them. `measured` grows as windows are taken.
    `focuses`: whether what seems to bring nothing is left alone once something brings a lot."""

    def __init__(
        self, measured: Measurements, only: frozenset[str], skip: frozenset[str], *, focuses: bool = True
    ) -> None:
        self.found = measured.found
        self.measured = measured
        self.ladder = ladder.Ladder()
        self.chosen_after = 0
        self.focuses = focuses
        self.crowded = False
        """Whether no process lives long enough for all settings. Then less of a gain is enough to focus on it."""
        self.without_ceilings = ""
        """Why no ceiling has to be measured; "" if ceilings have to be measured."""
        self._chosen_workers: int | None = None
        self._insist = bool(only)
        self._all = [_candidate(fix, self.found, only, skip) for fix in catalogue()]
        self.candidates = [each for each in self._all if not each.starts]
        """Candidates whose settings can be switched while a process trains."""
        self._named = _knobs_of(self.candidates)
        self.beside = [each for each in self._all if each.starts]
        """Candidates whose settings have to be set when a process starts. They are measured by pairs of processes."""

    def to_start(self) -> list[Setting]:
        """Settings that have to be set when a process starts, and that may pay."""
        return [setting for candidate in self.beside for setting in candidate.settings]

    def size(self) -> int:
        """About how many windows of settings a block will have."""
        return sum(len(candidate.settings) for candidate in self.candidates) + 3

    def speeds(self) -> dict[str, float]:
        """Rough speed of each setting relative to the baseline, by key."""
        return self.measured.speeds()

    def focused(self) -> bool:
        """Whether something brings a lot, so that it is confirmed, and what seems to bring nothing is left alone."""
        focuses = self.focuses and self.chosen_after > 0
        return focuses and self.measured.fastest(WORTH_IT if self.crowded else LARGE) is not None

    def tried(self) -> dict[str, Any]:
        """What the first process told of the knobs that windows may have, by name: of those that change how batches are
        made. None of the others."""
        self._named |= _knobs_of(self.candidates)
        of_loader = knobs.of_layer(dict.fromkeys(self._named, True), "loader")
        return {name: self.found.facts.get(name) if name in of_loader else None for name in self._named}

    # -- out of the selection --------------------------------------------------------------------------------------

    def alive(self, each: Probe) -> bool:
        return self.measured.out(each.key, each.as_setting()) is None

    def outcomes(self) -> list[Candidate]:
        """The candidates, each with why settings of it failed or took no effect."""
        return [_with_failures(candidate, self.measured) for candidate in self._all]

    def heed_ceilings(self) -> None:
        """Drop the fixes whose ceiling says that they have too little to gain. Needs the ceilings and baselines of one
        block."""
        if self._insist:
            return
        wait = ev.wait_share(self.measured.windows) or 0.0
        without_wait = 1 / max(1e-9, 1 - wait)
        # One pair of windows gives a rough ratio, so it must agree with the waiting time that there is nothing to gain.
        free = max(self.speeds().get(labels.REPLAY, math.inf), without_wait)
        if free < WORTH_TRYING:
            self._drop("data", f"{words.AT_ONCE}, training would be only {words.share_text(free - 1)} faster")
        if wait > 1 / WORTH_TRYING:
            gain = words.share_text(1 / wait - 1)
            self._drop("compute", f"if computing took no time, training would be only {gain} faster")

    def heed_supply(self, supply: Supply) -> None:
        """Drop the fixes that surely cannot pay according to the waiting that the first look saw. If no fix is left
        that loads faster, no ceiling has to be measured either."""
        if self._insist:
            return
        if supply.no_reason:
            share = supply.waiting
            told = words.share_text(share) if share >= LEAST_TOLD else f"under {words.share_text(2 * LEAST_TOLD)}"
            waits = f"waiting for data takes {told} of the time"
            why = f"{waits}, as the first look at the phases of a step showed"
            crowded = supply.crowding >= HARDLY
            self._drop("data", why, spared=crowded)
            if not crowded:
                self.without_ceilings = f"there was no need, since {waits}"
        elif supply.bound:
            busy = words.share_text(1 - supply.wait)
            self._drop(
                "compute", f"computing takes {busy} of the time, as the first look at the phases of a step showed"
            )

    def _drop(self, target: str, why: str, *, spared: bool = False) -> None:
        """Drop the fixes of this target, because of `why`. `spared`: except those that free CPUs."""
        speeds = self.speeds()
        for candidate in self.candidates:
            if spared and candidate.fix.frees_cpus:
                continue
            # If it was faster, the rough bound that says that it can't pay must be wrong.
            if candidate.fix.target == target and candidate.settings and not ladder.pays(candidate, speeds):
                candidate.settings = []
                candidate.refusal = f"{TOO_LITTLE}: {why}"

    def heed_windows(self) -> None:
        """Heed what the windows of a block have shown."""
        self.ladder.heed_losses(self.measured, self.candidates)
        self.heed_waits()
        _reconsider(self.candidates, self.measured)

    def heed_waits(self) -> None:
        """Drop numbers of workers that can't be faster than one of those measured."""
        if not self._insist:
            curve.drop_pointless(self.candidates, self.measured)

    def heed_kernel(self, bound: float, share: float | None = None) -> None:
        """Drop the fixes that can only save time of the kernel, if that is too short. Both are as in `KernelTime`."""
        for each in filter(attrgetter("of_kernel"), self._all):
            each.share = share
        least = WORTH_IT if self.focused() else WORTH_TRYING
        too_little.leave_out(self._all, self.measured, lambda each: too_little.of_kernel(each, bound, least))

    def heed_explained(self, shares: Mapping[str, float] | None, sampling: SamplingProfile | None) -> None:
        """Heed what was seen of where the time goes. Each is as for the method that heeds it."""
        self.heed_phases(shares)
        self.heed_samples(sampling)
        if (told := kernel_time.of(self.measured.windows)) is not None:
            self.heed_kernel(told.bound, told.share)

    def heed_phases(self, shares: Mapping[str, float] | None) -> None:
        """Drop fixes that act on parts of a step which take too little time. `shares`: parts of the time of the
        training as written, by phase; None if they are not known: then nothing is dropped. Measured settings stay."""
        if shares is not None:
            for each in self._all:
                each.share = too_little.share_of(each, shares)
            self._leave_out(lambda each: too_little.of_phases(each, shares))

    def heed_samples(self, sampling: SamplingProfile | None) -> None:
        """Drop fixes that act within functions in which hardly a sample was taken. None: the training was not sampled,
        and nothing is dropped. Measured settings stay."""
        if sampling is not None:
            self._leave_out(lambda each: too_little.of_samples(each, sampling))

    def _leave_out(self, why: Callable[[Candidate], str]) -> None:
        """Drop the fixes for which there is a reason why they have too little to gain, unless one was measured."""
        if not self._insist:
            too_little.leave_out(self._all, self.measured, why)

    # -- in the selection ------------------------------------------------------------------------------------------

    def probes(self, session: int, *, first_block: bool, settled: bool = False) -> list[Probe]:
        """The probes that are worth a window now, with priorities: the ladder first, then what leads, the losing last.

        A setting that clearly loses gets one block in each of the sessions that a claim needs, and no more. Only
        settings that may still win get further ones once the choice is made: the best setting of each fix, as long as
        it seems to bring something, and the best rung. Dropping the others makes no false claims, because it never
        makes a setting look faster. Once one of them brings a lot, a single session is enough for those that seem to
        bring little. `settled`: return the probes as they will be once all have the sessions that a claim needs.
        """
        speeds = self.speeds()
        sessions = self.measured.sessions_by_key()
        focused = self.focused()
        chosen: dict[str, Probe] = {}

        def add(setting: Setting, priority: int) -> None:
            key = labels.key_of(setting)
            chosen.setdefault(key, probe(key, setting, priority=priority))

        def enough(key: str, standing: Standing = Standing.PROMISING) -> bool:
            wanted = 1 if focused and standing < Standing.PROMISING else schedule.LEAST_SESSIONS
            return settled or len(sessions.get(key, ())) >= wanted

        rungs = {labels.key_of(setting): setting for _, setting in self.ladder.rungs}
        highest = max(rungs, key=lambda key: speeds.get(key, math.inf), default="")
        for key, setting in rungs.items():
            if key == highest or not enough(key):
                add(setting, 0)
        if self.chosen_after and self.best_workers():
            add(self.best_workers(), 0)  # What dependent fixes are compared with.
        standings = self._standings(speeds)
        # If nothing seems to bring anything, the time goes into making sure of that.
        winning = max((Standing.LEADING, *(standing for _, standing in standings)))
        promising = [whole for whole, standing in standings if standing is Standing.PROMISING]
        fastest: Setting = max(promising, key=lambda whole: speeds.get(labels.key_of(whole), 0.0), default={})
        for whole, seen in standings:
            key = labels.key_of(whole)
            # What changes a part of the fastest may be as fast, and is the smaller change.
            leads = whole == fastest or (whole.items() < fastest.items() and seen is Standing.PROMISING)
            little = focused and not leads and speeds.get(key, math.inf) < WORTH_IT
            standing = min(seen, Standing.LEADING) if little else seen
            again = first_block or standing >= (Standing.LEADING if self.chosen_after else Standing.BEHIND)
            if again and (standing is winning or not enough(key, standing)):
                add(whole, _priority(standing, chosen=self.chosen_after > 0, leads=leads))
        return [each for each in (*chosen.values(), *self._ceilings(session, sessions)) if self.alive(each)]

    def _standings(self, speeds: dict[str, float]) -> list[tuple[Setting, Standing]]:
        """Every setting that is still measured, including what it builds on, and its standing so far."""
        found: list[tuple[Setting, Standing]] = []
        for candidate in self.candidates:
            if candidate.with_workers and not self.chosen_after:
                continue
            best = max((speeds.get(candidate.key(setting), 0.0) for setting in candidate.settings), default=0.0)
            # The speed that it has to beat: that of the setting that it builds on, or of the training as written.
            without = speeds.get(labels.key_of(candidate.base), 1.0) if candidate.base else 1.0
            for setting in candidate.settings:
                whole = {**candidate.base, **setting}
                found.append((whole, _standing(speeds.get(labels.key_of(whole), math.inf), best, without)))
        return found

    def promising(self) -> bool:
        """Whether some setting seems to make the training faster."""
        return any(standing is Standing.PROMISING for _, standing in self._standings(self.speeds()))

    def news(self, probes: Sequence[Probe]) -> list[Probe]:
        """The probes of which no window was counted yet."""
        measured = self.measured.sessions_by_key().keys()
        return [each for each in probes if each.key not in measured]

    def _ceilings(self, session: int, sessions: dict[str, set[int]]) -> Iterator[Probe]:
        """The ceilings that were not measured yet. The best number of workers has its own, once it is chosen."""
        if not self.found.has_loader or self.without_ceilings:
            return
        loader_only: list[Setting] = [{}]
        if self.chosen_after and self.best_workers():
            loader_only.append(self.best_workers())
        wanted = [probe(labels.REPLAY, replay.SETTING, priority=2)]
        wanted += [
            probe(labels.key_of(setting, "loader_only"), setting, mode="loader_only", priority=4)
            for setting in loader_only
        ]
        for each in wanted:
            done = sessions.get(each.key, set())
            if session not in done and len(done) < CEILING_SESSIONS:
                yield each

    # -- choosing --------------------------------------------------------------------------------------------------

    def explored(self) -> bool:
        """Whether every setting that can be tried by now was measured once, or is ruled out."""
        measured = self.measured.sessions_by_key().keys()
        return all(
            candidate.key(setting) in measured or not self.alive(probe(candidate.key(setting), whole))
            for candidate in self.candidates
            if self.chosen_after or not candidate.with_workers
            for setting in candidate.settings
            for whole in [{**candidate.base, **setting}]
        )

    def unmeasured(self) -> bool:
        """Whether some setting has no window yet, including combinations and settings that the choice added."""
        rungs = {labels.key_of(setting) for _, setting in self.ladder.rungs}
        return not self.explored() or not rungs <= self.speeds().keys()

    def choose(self, session: int) -> None:
        """Choose the best settings after the first full block: add numbers of workers around the best one, and give
        dependent fixes their base.

        Windows of later sessions then confirm a choice that they did not make.
        """
        self.chosen_after = session
        for candidate in self.candidates:
            if candidate.sweep and candidate.settings:
                limit = max(WORKER_LIMIT, 4 * self.found.usable_cpus)
                more = schedule.around_best(curve.speeds(self.candidates, self.measured), limit)
                candidate.settings += [num_workers.setting_of(count) for count in more]
        self.heed_waits()
        best = self.best_workers()
        workers = num_workers.under(best, self.found.num_workers)
        self._chosen_workers = workers if best else None
        for candidate in self.candidates:
            if not (candidate.with_workers and candidate.settings):
                continue
            if workers == 0:
                candidate.settings = []
                measured = len(curve.speeds(self.candidates, self.measured)) > 1
                candidate.refusal = NO_FASTER_WORKERS if measured else NO_WORKERS
            else:
                candidate.base = best
        for candidate in curve.hidden(self.candidates, self.measured, best):
            candidate.base = best

    def best_workers(self) -> Setting:
        """The setting of the best number of workers so far; empty if that is the user's own. The number that was chosen
        stays unless another is clearly better: a choice that kept changing between equal numbers would collect the
        sessions that a claim needs for none of them."""
        measured = curve.speeds(self.candidates, self.measured)
        best = schedule.fewest_workers(measured)
        if self._chosen_workers in measured and measured[self._chosen_workers] > CLEARLY_LOSING * measured[best]:
            best = self._chosen_workers
        if best == self.found.num_workers or measured[best] < WORTH_TRYING:
            return {}
        return num_workers.setting_of(best)

    def climb(self, *, one_more: bool = False) -> None:
        """Choose the ladder of the combination. `one_more`: as for `Ladder.climb`."""
        self.ladder.climb(self.candidates, self.measured, self.best_workers(), one_more=one_more)

    def climb_on(self) -> bool:
        """Extend the ladder by what a later session tried for the first time. Returns whether it grew."""
        return self.ladder.climb_on(self.candidates, self.measured, self.best_workers())
