"""What an examination gathered for the judge: the candidates, the windows, and the estimates made from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Risk, Setting, Speedup, Window
from bottleneck_doctor.examine.settling import Settling
from bottleneck_doctor.fixes import Fix, Function, Offer
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.statistics.speedups import Observation

LARGEST_RATIO = 1e4
TIME_OVER = "the time was over"
TOO_LITTLE = "too little to gain"
"""Begins the reason of a fix that is out by its ceiling, or by the part of the time that it acts on."""


@dataclass
class Candidate:
    """One fix in the examination: the settings it tries, or why it tries none."""

    fix: Fix
    refusal: str = ""
    settings: list[Setting] = field(default_factory=list)
    with_workers: bool = False
    sweep: bool = False
    """Whether its settings are numbers of workers; then more numbers around the best one are tried."""
    offered_risk: Risk | None = None
    """The risk of the settings that are tried; None if it is the fix's own."""
    base: Setting = field(default_factory=dict)
    of_kernel: bool = False
    """Whether its settings can only save time in which the kernel works."""
    within: tuple[Function, ...] = ()
    """The functions out of whose time everything comes that its settings can save; empty if that is not known."""
    share: float | None = None
    """The part of the training's time out of which everything comes that its settings can save; None if that is not
    known."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why windows of a setting failed, by key."""
    idle: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The knobs of a setting that took no effect, by key."""

    def take(self, offer: Offer) -> None:
        """Try what the fix offers."""
        self.refusal = ""
        self.settings = [dict(setting) for setting in offer.settings]
        self.with_workers, self.sweep, self.of_kernel = offer.with_workers, offer.sweep, offer.of_kernel
        self.within, self.offered_risk = offer.within, offer.risk

    @property
    def risk(self) -> Risk:
        """How the fix may change the training's results."""
        return self.offered_risk or self.fix.risk

    @property
    def starts(self) -> bool:
        """Whether its settings have to be set when a process starts."""
        return any(knobs.of_layer(setting, "session") for setting in self.settings)

    def key(self, setting: Setting) -> str:
        """The key of one of its settings, including the setting that it builds on."""
        return key_of({**self.base, **setting})


@dataclass(frozen=True)
class JudgeEvidence:
    """Everything that was gathered, for the judge."""

    found: Found
    windows: Sequence[Window]
    candidates: Sequence[Candidate]
    rungs: Sequence[tuple[str, Setting]]
    """The combination ladder as chosen: for each rung, the fix that it adds and the whole setting."""
    chosen_after: int
    """The last session whose windows chose the best settings; later sessions confirm."""
    epoch_batches: int | None
    best_workers: Setting = field(default_factory=dict)
    """The number of workers that dependent fixes and the ladder build on; empty if it is the user's own."""
    beside: Sequence[Observation] = ()
    """One observation for each pair of a process started with a setting and a process as written."""
    other_load: float | None = None
    """Most cores that other programs kept busy in a session, on average; None if that was not seen."""
    least_other_load: float | None = None
    """The same in the session in which they were least busy."""
    cut: str = TIME_OVER
    """What ended the measuring."""
    significance: float = speedups.SIGNIFICANCE
    """How often a claim, or an interval, may be wrong: less often if measuring may end because of what is seen."""
    settling: Settling | None = None
    """What another examination would take; None if that is not known."""
    entrypoint: Sequence[str] = ()
    """The script or module that runs, with its arguments, which may give what an edit is to change."""
    edits: bool = True
    """Whether the edits of what is offered are made: each reads files, and takes longer than all the rest."""


class Estimates:
    """Estimates of every setting by key: promised, steady, confirmed, and what each adds to its base."""

    def __init__(self, evidence: JudgeEvidence) -> None:
        made = ev.undisturbed(ev.pairs(evidence.windows, evidence.epoch_batches), evidence.windows)
        self.pairs = made
        self._level = level = 1 - evidence.significance
        self.promised = speedups.estimate_all([*ev.observations(made), *evidence.beside], level)
        self.steady = speedups.estimate_all([*ev.observations(made, steady=True), *evidence.beside], level)
        late = [pair for pair in made if pair.session > evidence.chosen_after]
        self.confirmed = speedups.estimate_all([*ev.observations(late), *evidence.beside], level)
        over = {
            candidate.key(setting): key_of(candidate.base)
            for candidate in evidence.candidates
            for setting in candidate.settings
            if candidate.base
        }
        self.added = speedups.differences(ev.observations(made), over, level)
        self.floor = speedups.noise_floor(self.promised)

    def decisive(self, key: str, base: Setting) -> speedups.SpeedupEstimate:
        """The estimate that a fix is judged by: against the baseline, or against what it builds on."""
        return self.added[key] if base and key in self.added else self.promised[key]

    def over(self, whole: Setting, part: Setting) -> speedups.SpeedupEstimate | None:
        """What a setting adds to a part of it, from processes that measured both; None if no process did."""
        key = key_of(whole)
        return speedups.differences(ev.observations(self.pairs), {key: key_of(part)}, self._level).get(key)

    def adds(self, whole: Setting, part: Setting) -> bool:
        """Whether it is sure that a setting is faster than a part of it."""
        more = self.over(whole, part)
        if more is None or more.sessions < speedups.SESSIONS_OF_A_LARGE_CLAIM:
            # Few processes measured both, so each is known beside the training as written only.
            return speedups.surely_faster(self.promised[key_of(whole)], self.promised[key_of(part)], self._level)
        return more.low > 1


def speedup(estimate: speedups.SpeedupEstimate) -> Speedup:
    """An estimate in the form of the result: bounded, because JSON has no infinity."""
    return Speedup(
        estimate=min(LARGEST_RATIO, estimate.estimate),
        low=min(LARGEST_RATIO, max(0.0, estimate.low)),
        high=min(LARGEST_RATIO, estimate.high),
        pairs=estimate.pairs,
        sessions=estimate.sessions,
    )
