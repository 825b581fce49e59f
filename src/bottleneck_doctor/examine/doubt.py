"""What the report says about undecided fixes: the chance that each one helps, and what would settle it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import FixOutcome, Settle
from bottleneck_doctor.examine import undecided
from bottleneck_doctor.examine.evidence import Candidate, Estimates, JudgeEvidence
from bottleneck_doctor.examine.pair_costs import PAIRS
from bottleneck_doctor.examine.settling import Open
from bottleneck_doctor.measure import pairing, pauses
from bottleneck_doctor.measure.repeats import baseline_changes
from bottleneck_doctor.statistics import chance, speedups
from bottleneck_doctor.wording import ranking

LEAST_AWAITED = 0.05
"""The least gain for which an examination goes on if nothing else is left, as one of the training as a whole: of steps
and of what lies between epochs. Ours: a smaller one takes many processes to show."""
AWAITED = 0.05
"""It goes on if the chance of such a gain is at least this."""


class Doubt:
    """The chances of fixes in one examination, and what would settle those that are open."""

    def __init__(self, evidence: JudgeEvidence, estimates: Estimates) -> None:
        self._evidence = evidence
        self._estimates = estimates
        self._awaited = pauses.gain_of_steps(LEAST_AWAITED, pauses.share(evidence.windows))
        """The gain of steps that is worth waiting for; None if none is."""
        self._spread = chance.spread(
            [*pairing.observations(estimates.pairs), *evidence.beside],
            baseline_changes(evidence.windows),
            estimates.promised,
        )

    def told(self, outcome: FixOutcome) -> FixOutcome:
        """An outcome with its chance and, if it is still open, with what would settle it."""
        candidate = self._candidate(outcome)
        outcome = replace(outcome, chance=self._chance(outcome, candidate), at_least=self._at_least(outcome, candidate))
        if outcome.status != "cannot_tell":
            return outcome
        wanted = self._open(outcome, candidate)
        if wanted is None:
            never = f"{outcome.reason}{undecided.AND_NEVER}{self._never(outcome, candidate)}"
            return replace(outcome, reason=never, more_blocks=None)
        if self._evidence.settling is None:
            return outcome
        return replace(outcome, settle=self._evidence.settling.settle([wanted], self._tried())[0])

    def worth_waiting(self, outcome: FixOutcome) -> bool:
        """Whether it is worth more time to decide an undecided fix. One that was measured in too few processes for a
        claim always is."""
        if outcome.speedup is None or outcome.speedup.sessions < speedups.MINIMUM_SESSIONS:
            return True
        if self._awaited is None:
            return False
        much = self._chance(outcome, self._candidate(outcome), least=self._awaited)
        return much is None or much >= AWAITED

    def sessions(self, outcome: FixOutcome) -> int | None:
        """How many sessions in all would decide a fix that was measured; None if more of them would not."""
        return self._sessions(outcome, self._candidate(outcome))

    def next_step(self, outcomes: Sequence[FixOutcome]) -> tuple[Settle, str] | None:
        """What would settle everything that is still open and could matter, and its command for a sentence. Fixes that
        were never measured are included only if nothing else may help. None if more time would not settle anything."""
        unsettled = [(each, self._candidate(each)) for each in outcomes if each.status == "cannot_tell"]
        found = [(each, self._open(each, candidate)) for each, candidate in unsettled]
        known = [(each, wanted) for each, wanted in found if wanted is not None]
        matter = [wanted for each, wanted in known if each.chance is not None and each.chance >= ranking.HARDLY]
        chosen = matter or [wanted for each, wanted in known if each.chance is None]
        if not chosen or self._evidence.settling is None:
            return None
        return self._evidence.settling.settle(chosen, self._tried())

    # -- one outcome -----------------------------------------------------------------------------------------------

    def _tried(self) -> frozenset[str]:
        return frozenset(each.fix.id for each in self._evidence.candidates if each.settings)

    def _candidate(self, outcome: FixOutcome) -> Candidate:
        return next(each for each in self._evidence.candidates if each.fix.id == outcome.id)

    def _chance(
        self, outcome: FixOutcome, candidate: Candidate, *, least: float = speedups.EQUIVALENCE
    ) -> float | None:
        """The chance that it brings more than `least`, by default that it is worth its edit: by itself and, if it
        builds on something, also on top of that. None if it was not measured."""
        key = key_of(outcome.setting)
        if outcome.speedup is None or key not in self._estimates.promised:
            return None
        worth = chance.chance_worth(self._estimates.promised[key], self._spread, least=least)
        if candidate.base and key in self._estimates.added:
            added = self._estimates.added[key]
            worth = min(worth, chance.chance_worth(added, self._spread.of_differences(), least=least))
        return worth

    def _at_least(self, outcome: FixOutcome, candidate: Candidate) -> float | None:
        """How much faster it surely is, where that rests on one process. What other programs show is how windows differ
        from process to process, so it says nothing of a setting that a process is started with."""
        key = key_of(outcome.setting)
        if outcome.status != "cannot_tell" or outcome.speedup is None or candidate.starts:
            return None
        seen, tried = self._estimates.promised[key], len(self._tried())
        return chance.at_least(seen, self._spread, floor=self._estimates.floor, fixes_tried=tried)

    def _open(self, outcome: FixOutcome, candidate: Candidate) -> Open | None:
        """What it takes to decide it; None if more time would not help."""
        bases = self._bases(candidate)
        fixes = (candidate.fix.id, *(each.fix.id for each in bases))
        keys = [each.key(setting) for each in (candidate, *bases) for setting in each.settings]
        best = [key_of(outcome.setting), *([key_of(candidate.base)] if candidate.base else [])]
        sessions, blocks = speedups.MINIMUM_SESSIONS, 1
        if outcome.speedup is not None:
            needed = self._sessions(outcome, candidate)
            # For a setting that a process has to be started with, there are never more than `PAIRS` pairs.
            if needed is None or (candidate.starts and outcome.speedup.sessions >= PAIRS):
                return None
            sessions, blocks = needed, max(1, round(outcome.speedup.pairs / outcome.speedup.sessions))
        return Open(fixes, tuple(keys), tuple(best), sessions, blocks, candidate.starts)

    def _bases(self, candidate: Candidate) -> list[Candidate]:
        """The fixes that have to be tried together with it, because it builds on one of their settings."""
        if candidate.base:
            return [each for each in self._evidence.candidates if candidate.base in each.settings]
        if candidate.with_workers and not self._evidence.found.num_workers:
            return [each for each in self._evidence.candidates if each.sweep and each.settings]
        return []

    def _sessions(self, outcome: FixOutcome, candidate: Candidate, *, sharp: bool = False) -> int | None:
        """How many sessions would decide it. `sharp`: if processes and windows did not differ at all."""
        decisive = self._estimates.decisive(key_of(outcome.setting), candidate.base)
        spread = self._spread.of_differences() if candidate.base else self._spread
        if sharp:
            decisive = replace(decisive, sessions=2, standard_error=0.0, degrees_of_freedom=1e6)
        return chance.sessions_to_settle(decisive, spread, floor=self._estimates.floor)

    def _never(self, outcome: FixOutcome, candidate: Candidate) -> str:
        if candidate.starts and self._sessions(outcome, candidate) is not None:
            return undecided.PAIRS_TAKEN
        return undecided.never(self._estimates.floor, between=self._sessions(outcome, candidate, sharp=True) is None)
