"""The order of a check: a `CheckRequest` in, a `Check` out. It checks out the base, measures pairs of processes until
the answer is clear, and then looks for the reason. Here, clocks and processes meet the pure modules of the gate."""

from __future__ import annotations

import contextlib
import math
import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from bottleneck_doctor import __version__
from bottleneck_doctor.documents.check import STEP_TIME, Check, Culprit, GrowthTree, Metric
from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Entrypoint, Tool, Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine import no_result, outcome
from bottleneck_doctor.gate import decide, metrics, parts, plan, verdict
from bottleneck_doctor.gate.cause import culprits
from bottleneck_doctor.gate.cause.explain import explain
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.gate.paired import MOST_BROKEN_PAIRS, Pairs, environment_of, failure, with_phases
from bottleneck_doctor.gate.sides.compared import Compared
from bottleneck_doctor.gate.sides.git import GitFailed
from bottleneck_doctor.gate.sides.of_revisions import of_revisions
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Broken, Starter
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words

DEFAULT_BUDGET = 300.0
"""Seconds; explaining a regression takes extra time."""


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What the user asked for. `budget`: seconds; None means as long as the number of pairs takes, or else the
    default."""

    start: Start
    """The base's supervisor uses its `listen`; the head's uses the next port."""
    base_ref: str
    merge_base: bool = False
    base_setup: str | None = None
    budget: float | None = None
    pairs: int | None = None
    limits: Mapping[str, MetricLimit] = field(default_factory=lambda: DEFAULTS)
    steady: bool = True
    seed: int | None = None
    verbose: bool = False
    discretion: Discretion = field(default_factory=Discretion)
    """What every output has to keep secret."""

    def compared(self, tell: Callable[[str], None]) -> contextlib.AbstractContextManager[Compared]:
        """Both sides, for as long as the context lasts. `tell`: what is done meanwhile."""
        return of_revisions(
            self.start,
            self.base_ref,
            merge_base=self.merge_base,
            setup=self.base_setup,
            steadied=self.steady,
            tell=tell,
        )

    def repeat(self, seed: int) -> list[str]:
        """The command that repeats this check. Secrets in it are masked, so the user has to fill them in."""
        command = ["check", "--base-ref", self.base_ref, "--seed", str(seed)]
        step = self.limits[STEP_TIME].threshold
        if step != DEFAULTS[STEP_TIME].threshold:
            command += ["--threshold", f"{100 * step:g}%"]
        for option, value in (
            ("--base-setup", self.base_setup),
            ("--budget", None if self.budget is None else f"{self.budget:g}s"),
            ("--pairs", None if self.pairs is None else str(self.pairs)),
        ):
            command += [] if value is None else [option, value]
        for option, is_set in (("--merge-base", self.merge_base), ("--no-steady", not self.steady)):
            command += [option] if is_set else []
        return self.discretion.words(self.start.again(*command))


@dataclass(frozen=True)
class CheckOutcome:
    """The result of a check, and the repository's root."""

    check: Check
    root: Path


def check(request: CheckRequest, progress: Progress, outside: Outside | None = None) -> CheckOutcome:
    """Compare the head with the base. Raises `DoctorError` if nothing could be compared at all.

    `outside`: the clock, the processes, and what observes them; by default those of this machine.
    """
    with terminate_as_interrupt():
        try:
            return _Checking(request, progress, outside).run()
        except GitFailed as failed:
            raise DoctorError(
                "git-failed",
                "git failed when asked about the repository.",
                "See what git said below. `git status` and `git ls-files --others` have to work here.",
                detail=str(failed),
            ) from failed


class _Checking:
    def __init__(self, request: CheckRequest, progress: Progress, outside: Outside | None = None) -> None:
        self.request = request
        self.progress = progress
        self.outside = outside or Outside()
        self.seed = request.seed if request.seed is not None else secrets.randbelow(1 << 31)
        self.endless = request.pairs is not None and request.budget is None
        seconds = request.budget or DEFAULT_BUDGET
        total = None if self.endless else seconds
        self.budget = Budget(seconds, strict=not self.endless, total=total, now=self.outside.now)
        self.pairs: list[PairSample] = []
        self.lasted: list[float] = []
        self.warnings: list[Warning] = []
        self.culprits: list[Culprit] = []
        self.suspects: list[Culprit] = []
        self.growth: list[GrowthTree] = []
        self.broken: list[Broken] = []
        self.cut_short: list[Broken | None] = []
        """For each measured pair, what ended it too early; None if nothing did."""
        self.starter = Starter(
            self.budget, progress, self.outside, verbose=request.verbose, discretion=request.discretion
        )
        self.given_up = False
        """Whether the check gave up, because no pair that there was time for would have brought an answer."""
        self.judged: list[Metric] = []
        self.how: Judging
        """The last interim look; the result rests on it."""
        self.compared: Compared

    def run(self) -> CheckOutcome:
        with self.request.compared(self.progress.stage) as self.compared:
            # One list: what could not be put back is told at the end.
            self.warnings = self.compared.warnings
            if self.compared.sides is None:
                return CheckOutcome(self._document(new=True), self.compared.root)
            base, head = self.compared.sides
            phases = metrics.judges_phases(self.request.limits)
            self._pairs(Pairs(base, head, self.starter, random.Random(self.seed), phases=phases))
        if not self.pairs:
            if self.broken:
                raise failure(self.broken[0])
            raise no_result.out_of_time(self.budget.spent())
        if alone := self._fails_alone():
            raise failure(alone)
        return CheckOutcome(self._document(), self.compared.root)

    def _fails_alone(self) -> Broken | None:
        """How one revision failed in every pair after some windows; None unless the other one never did."""
        failed = [broken for broken in self.cut_short if broken is not None and broken.crashed and broken.alone]
        names = {broken.live.side.name for broken in failed}
        return failed[-1] if len(failed) == len(self.pairs) and len(names) == 1 else None

    # -- pairs ---------------------------------------------------------------------------------------------------------

    def _pairs(self, pairs: Pairs) -> None:
        """Measure one pair after another until the answer is clear or the time is over. Explain with the last one."""
        number = 0
        while not self.pairs or self._more():
            number += 1
            begun = self.budget.now()
            self.progress.stage(f"Starting both revisions (pair {number})")
            try:
                with pairs.pair(number) as both:
                    doing = f"Pair {number}: timing both revisions in turn"
                    self.progress.update(doing, self.budget.elapsed(), self.budget.total)
                    self.pairs.append(pairs.measure(number, both))
                    self.cut_short.append(both.broken)
                    if both.broken is not None:
                        self._note_broken(both.broken)
                    self.lasted.append(self.budget.now() - begun)
                    more = self._more()
                    self._look(last=not more)
                    self._say()
                    self.given_up = more and verdict.futile(self.pairs, self.how, self.judged)
                    if not more or self._is_clear() or self.given_up:
                        self._explain(both)
                        return
            except Broken as broken:
                self.broken.append(broken)
                if not self.pairs and self._is_plain(broken):
                    return
                self._note_broken(broken)
                if len(self.broken) >= MOST_BROKEN_PAIRS:
                    break
            except OutOfTime:
                break
        if self.pairs:
            self._look(last=True)
            self._explain(None)

    def _more(self) -> bool:
        """Whether another pair is wanted and fits into the time."""
        if self.request.pairs is not None:
            wanted = len(self.pairs) < self.request.pairs
        else:
            wanted = len(self.pairs) < decide.most_looked_at()
        return wanted and plan.another_fits(self._pair_seconds(), self._left())

    def _left(self) -> float:
        return math.inf if self.endless else self.budget.left()

    def _pair_seconds(self) -> float:
        return median(self.lasted) if self.lasted else 0.0

    def _is_clear(self) -> bool:
        return self.request.pairs is None and not verdict.is_open(self.judged, self.how)

    @staticmethod
    def _is_plain(broken: Broken) -> bool:
        """Whether starting again would fail in the same way."""
        return broken.live.found is None

    def _how(self, *, last: bool) -> Judging:
        fixed = self.request.pairs is not None
        count = len(self.pairs)
        if self.request.pairs is not None:
            most = self.request.pairs if not last else count
        else:
            room = plan.room_for(count, self._pair_seconds(), max(0.0, self._left()))
            most = min(decide.most_looked_at(), room)
        look = decide.interim_look_after(count, last=last, fixed=fixed)
        return Judging(self.request.limits, look, most, fixed, parts.has_part(self.pairs))

    def _look(self, *, last: bool) -> None:
        self.how = self._how(last=last)
        self.judged = metrics.judged(self.pairs, self.how)

    def _say(self) -> None:
        step = next((metric for metric in self.judged if metric.id == STEP_TIME), None)
        if step is None or step.change is None:
            return
        said = f"{step.change:+.1%}".replace("%", " %")
        if step.low is not None and step.high is not None:
            said += f" ({step.low:+.1%} to {step.high:+.1%})".replace("%", " %")
        self.progress.note(f"{words.count_text(len(self.pairs), 'pair')}: step time {said}")

    def _note_broken(self, broken: Broken) -> None:
        """Warn why a pair was cut short or lost. A script that came to its end needs no warning."""
        crashed = broken.crashed
        where, why = broken.live.side.said, broken.why.rstrip(".")
        told = "After some windows had been measured, " if crashed else "A pair of processes could not be measured: "
        warning = Warning(slug="script-failed-later" if crashed else "pair-lost", sentence=f"{told}{why} ({where}).")
        if broken.ending is not Ending.END and all(each.slug != warning.slug for each in self.warnings):
            self.warnings.append(warning)

    # -- why -----------------------------------------------------------------------------------------------------------

    def _explain(self, both: SideBySide | None) -> None:
        """Look for what grew, or seems to have grown. `both`: the last pair; None if its processes are gone."""
        grew, seems = verdict.growth(self.judged), verdict.seeming_growth(self.judged)
        if both is None or both.broken is not None:
            self._explain_by_phases(grew)
            return
        if grew is None and seems is None:
            return
        differences = self.compared.differences()
        if grew is None and not differences.code:
            return
        self.progress.stage("Finding out what became slower")
        if grew is not None:
            try:
                self.pairs[-1] = with_phases(self.pairs[-1], both)
            except Broken:
                self._explain_by_phases(grew)
                return
        found = explain(both, self.compared.roots, self.pairs, grew or seems or 0.0, differences)
        if grew is None:
            # A line that was rewritten has no counterpart on the base, so it would seem to have grown from nothing.
            self.suspects = [each for each in found.culprits if each.changed_here and each.kind == "function"]
            return
        self.culprits, self.growth = found.culprits, found.growth
        self.warnings += found.missing

    def _explain_by_phases(self, grew: float | None) -> None:
        """Explain without running processes, by the phases that the pairs have shown."""
        if grew is None:
            return
        self.culprits = culprits.grown_phases(self.pairs, grew)
        told = "The functions and lines that grew could not be found: the last pair of processes had ended."
        self.warnings.append(Warning(slug="culprits-missing", sentence=told))

    def _placed(self, culprit: Culprit) -> Culprit:
        """The culprit with the path of its file on the head; results name all files so."""
        if culprit.site is None:
            return culprit
        return replace(culprit, site=replace(culprit.site, file=str(self.compared.root / culprit.site.file)))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _document(self, *, new: bool = False) -> Check:
        request, base, head = self.request, self.compared.base, self.compared.head
        script = request.start.name
        if new:
            sentence = f"{script} does not exist on {base.name}: it is new, so there is nothing to compare it with."
        else:
            sentence = verdict.sentence(self.judged, base.name, len(self.pairs), self.culprits)
            seen = verdict.learnt(self.suspects)
            if self.given_up and verdict.status(self.judged) == "cannot_tell":
                sentence = verdict.refusal(self.pairs, self.how, self.judged, self._pair_seconds(), seen)
            elif seen:
                sentence += f" {seen}"
            self.warnings += verdict.weak_evidence(self.pairs, self.how, self.judged)
        if self.starter.missing_ranks:
            self.warnings.append(outcome.rank_missing(self.starter.missing_ranks))
        environment = None if new else environment_of(self.starter, steadied=request.steady)
        made = Check(
            tool=Tool(name="bottleneck-doctor", version=__version__),
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            entrypoint=Entrypoint(
                argv=request.discretion.words(request.start.entrypoint()), cwd=str(self.compared.cwd)
            ),
            base=base,
            head=head,
            status="new" if new else verdict.status(self.judged),
            sentence=sentence,
            metrics=self.judged,
            pairs=[metrics.record_of(pair) for pair in self.pairs],
            error_rate=decide.ERROR_RATE,
            seconds=self.budget.elapsed(),
            budget=0.0 if self.endless else self.budget.seconds,
            steady=request.steady,
            commits=self.compared.commits,
            culprits=[self._placed(each) for each in self.culprits],
            suspects=[self._placed(each) for each in self.suspects],
            growth=self.growth,
            warnings=self.warnings,
            environment=environment,
            command=request.repeat(self.seed),
        )
        return request.discretion.document(made)
