"""The order of a check: a `CheckRequest` in, a `Check` out. It checks out the base, measures pairs of processes until
the answer is clear, and then looks for the reason. Here, clocks and processes meet the pure modules of the gate."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from bottleneck_doctor import __version__
from bottleneck_doctor.documents.check import (
    STEP_TIME,
    Check,
    Culprit,
    GrowthTree,
    Losses,
    Metric,
    Status,
    TriedEdit,
)
from bottleneck_doctor.documents.report import Entrypoint, Tool, Warning
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine import no_result, outcome
from bottleneck_doctor.gate import decide, losses, metrics, parts, plan, tried, verdict
from bottleneck_doctor.gate.cause import culprits
from bottleneck_doctor.gate.cause.explain import explain
from bottleneck_doctor.gate.lent import Alike, Lent, lent
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.gate.paired import MOST_BROKEN_PAIRS, Pairs, environment_of, failure, with_phases
from bottleneck_doctor.gate.request import DEFAULT_BUDGET, PairsRequest
from bottleneck_doctor.gate.sides.compared import Compared
from bottleneck_doctor.gate.sides.git import GitFailed
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Broken, Side, Starter
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import loss_moved


@dataclass(frozen=True)
class CheckOutcome:
    """The result of a check, the repository's root, and the loop that each side was last seen at, by its name."""

    check: Check
    root: Path
    loops: Mapping[str, Found] = field(default_factory=dict)


@dataclass(frozen=True)
class Shared:
    """What comparisons that run at once have in common. `among`: how many there are."""

    starter: Starter
    seed: int
    among: int


def check(request: PairsRequest, progress: Progress, outside: Outside | None = None) -> CheckOutcome:
    """Compare the two sides that are asked for. Raises `DoctorError` where nothing could be compared at all.

    `outside`: the clock, the processes, and what observes them; by default those of this machine.
    """
    with terminate_as_interrupt():
        try:
            return Checking(request, progress, outside).run()
        except GitFailed as failed:
            raise DoctorError(
                "git-failed",
                "git failed when asked about the repository.",
                "See what git said below. `git status` and `git ls-files --others` have to work here.",
                detail=str(failed),
            ) from failed


def _pairs_of(request: PairsRequest, sides: tuple[Side, Side], starter: Starter, seed: int) -> Pairs:
    """The pairs that are asked for."""
    return Pairs(
        *sides,
        starter,
        random.Random(seed),
        phases=metrics.judges_phases(request.limits),
        wanted=request.pairs_wanted,
        explains=request.explains,
        known=request.known,
    )


class Checking:
    """One comparison of two sides. `race`: what several comparisons share that run at once. Whoever runs them hands in
    the pairs (`take`)."""

    def __init__(
        self, request: PairsRequest, progress: Progress, outside: Outside | None = None, race: Shared | None = None
    ) -> None:
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
            self.budget,
            progress,
            self.outside,
            verbose=request.verbose,
            discretion=request.discretion,
            known=request.loop,
        )
        self.among = 1
        if race is not None:
            self.seed, self.budget, self.starter, self.among = race.seed, race.starter.budget, race.starter, race.among
        self.given_up = False
        """Whether the check gave up, because no pair that there was time for would have brought an answer."""
        self.judged: list[Metric] = []
        self.losses: Losses | None = None
        self.lent: Lent | None = None
        self.how: Judging
        """The last interim look; the result rests on it."""
        self.compared: Compared

    def run(self) -> CheckOutcome:
        with self.request.compared(self.progress.stage) as self.compared:
            # One list: what could not be put back is told at the end.
            self.warnings = self.compared.warnings
            if self.compared.sides is None:
                return CheckOutcome(self.document(new=True), self.compared.root)
            self._pairs(_pairs_of(self.request, self.compared.sides, self.starter, self.seed))
        if not self.pairs:
            if self.broken:
                raise failure(self.broken[0], self.request.sides)
            raise no_result.out_of_time(self.budget.spent())
        if alone := self._fails_alone():
            raise failure(alone, self.request.sides)
        loops = {name: live.loop for name, live in self.starter.last.items()}
        return CheckOutcome(self.document(), self.compared.root, loops)

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
            self.progress.stage(f"Starting both (pair {number})")
            try:
                with pairs.pair(number) as both:
                    doing = f"Pair {number}: timing both in turn"
                    self.progress.update(doing, self.budget.elapsed(), self.budget.total)
                    sample = pairs.measure(number, both)
                    if not self.take(sample, both.broken, self.budget.now() - begun):
                        self._explain(both)
                        return
            except Broken as broken:
                self.broken.append(broken)
                if not self.pairs and broken.live.found is None:
                    return  # Starting again would fail in the same way.
                self._note_broken(broken)
                if len(self.broken) >= MOST_BROKEN_PAIRS:
                    break
            except OutOfTime:
                break
        if self.pairs:
            self.look(last=True)
            self._explain(None)

    def take(self, sample: PairSample, broken: Broken | None, seconds: float) -> bool:
        """Take in a pair that took so long, and look at all pairs so far. `broken`: what ended it too early. Returns
        whether another one is wanted, and may tell more."""
        if self.request.earlier and not self.pairs:
            # The first processes have said which machine this is.
            seen = environment_of(self.starter, steadied=self.request.steady)
            self.lent = lent(self.request.earlier, Alike(self._argv(), seen.fingerprint, self.request.steady))
        self.pairs.append(sample)
        self.cut_short.append(broken)
        if broken is not None:
            self._note_broken(broken)
        self.lasted.append(seconds)
        more = self._more()
        self.look(last=not more)
        self._say()
        self.given_up = more and self.request.gives_up and verdict.futile(self.pairs, self.how, self.judged)
        return more and not self._is_clear() and not self.given_up

    def _more(self) -> bool:
        """Whether another pair is wanted and fits into the time."""
        if self.request.pairs is not None:
            wanted = len(self.pairs) < self.request.pairs
        else:
            wanted = len(self.pairs) < decide.most_looked_at()
        return wanted and plan.another_fits(self._pair_seconds(), self._left())

    def _argv(self) -> list[str]:
        return self.request.discretion.words(self.request.start.entrypoint())

    def _left(self) -> float:
        return math.inf if self.endless else self.budget.left()

    def _pair_seconds(self) -> float:
        return median(self.lasted) if self.lasted else 0.0

    def _is_clear(self) -> bool:
        return self.request.pairs is None and not verdict.is_open(self.judged, self.how)

    def _how(self, *, last: bool) -> Judging:
        fixed = self.request.pairs is not None
        count = len(self.pairs)
        if self.request.pairs is not None:
            most = self.request.pairs if not last else count
        else:
            room = plan.room_for(count, self._pair_seconds(), max(0.0, self._left()))
            most = min(decide.most_looked_at(), room)
        look = decide.interim_look_after(count, last=last, fixed=fixed)
        edit = self.request.tries is not None
        # What a part of a step says is that it is worse, which is not what somebody asks of an edit.
        by_part = not edit and parts.has_part(self.pairs)
        prior = None if self.lent is None else self.lent.spread
        return Judging(self.request.limits, look, most, fixed, by_part, edit, self.request.sides, self.among, prior)

    def look(self, *, last: bool) -> None:
        """Judge what is known by now. `last`: no more pairs will come."""
        self.how = self._how(last=last)
        self.judged = metrics.judged(self.pairs, self.how)

    def _say(self) -> None:
        step = next((metric for metric in self.judged if metric.id == STEP_TIME), None)
        if step is None or step.change is None:
            return
        if self.request.tries is not None:
            said = tried.progress_text(step, self.pairs)
            self.progress.note(f"{self.compared.head.name}, {said}" if self.among > 1 else said)
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
        if not self.request.explains or (self.request.tries is not None and self.request.tries.setting):
            return  # What is switched has no lines.
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
        found = explain(both, self.compared.roots, self.pairs, grew or seems or 0.0, differences, self.compared.texts)
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

    # -- the end -------------------------------------------------------------------------------------------------------

    def document(self, *, new: bool = False) -> Check:
        """What came of it."""
        request, base, head = self.request, self.compared.base, self.compared.head
        if not new:
            self._compare_losses()
        sentence = self._sentence(new=new)
        if not new:
            in_time = self.endless or len(self.broken) >= MOST_BROKEN_PAIRS
            minutes = None if in_time else plan.enough_minutes(self._pair_seconds(), self.budget.seconds)
            self.warnings += verdict.weak_evidence(self.pairs, self.how, self.judged, minutes)
        if self.starter.missing_ranks:
            self.warnings.append(outcome.rank_missing(self.starter.missing_ranks))
        environment = None if new else environment_of(self.starter, steadied=request.steady)
        made = Check(
            tool=Tool(name="bottleneck-doctor", version=__version__),
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            entrypoint=Entrypoint(argv=self._argv(), cwd=str(self.compared.cwd)),
            base=base,
            head=head,
            status="new" if new else self._status(),
            sentence=sentence,
            metrics=self.judged,
            pairs=[metrics.record_of(pair) for pair in self.pairs],
            error_rate=decide.ERROR_RATE / self.among,
            seconds=self.budget.elapsed(),
            budget=0.0 if self.endless else self.budget.seconds,
            steady=request.steady,
            commits=self.compared.commits,
            culprits=[_placed(each, self.compared.root) for each in self.culprits],
            suspects=[_placed(each, self.compared.root) for each in self.suspects],
            growth=self.growth,
            warnings=self.warnings,
            environment=environment,
            command=request.repeat(self.seed),
            edit=self.tried_edit(),
            losses=self.losses,
            lent=None if self.lent is None else self.lent.document(),
        )
        return request.discretion.document(made)

    def _status(self) -> Status:
        if self.request.tries is not None and self.losses is not None and loss_moved(self.losses):
            return "regressed"
        return verdict.status(self.judged)

    def _compare_losses(self) -> None:
        """Between revisions another loss may be what was wanted, so it is told and nothing more."""
        self.losses = losses.compared(self.pairs, self.request.sides)
        if self.losses is not None and loss_moved(self.losses) and self.request.tries is None:
            self.warnings.append(Warning(slug="loss-moved", sentence=self.losses.sentence))

    def _sentence(self, *, new: bool) -> str:
        """What came of it, in a few sentences."""
        base, judged, seconds = self.compared.base.name, self.judged, self._pair_seconds()
        if new:
            script = self.request.start.name
            return f"{script} does not exist on {base}: it is new, so there is nothing to compare it with."
        seen = verdict.learnt(self.suspects)
        if self.request.tries is not None:
            by = tried.settled_by(self.pairs, self.how, judged, seconds, given_up=self.given_up)
            said = tried.sentence(judged, self.pairs, self.culprits, by, self.losses)
            return f"{said} {seen}" if seen else said
        if self.given_up and verdict.status(judged) == "cannot_tell":
            return verdict.refusal(self.pairs, self.how, judged, seconds, seen)
        said = verdict.sentence(judged, base, len(self.pairs), self.culprits)
        return f"{said} {seen}" if seen else said

    def tried_edit(self) -> TriedEdit | None:
        """What was tried, as the document tells it."""
        edit, discretion = self.request.tries, self.request.discretion
        if edit is None:
            return None
        step = next((metric for metric in self.judged if metric.id == STEP_TIME), None)
        return TriedEdit(
            files=sorted(edit.files),
            diff=edit.diff(),
            arguments=None if edit.arguments is None else discretion.words(edit.arguments),
            variables=edit.told_variables(discretion),
            speedup=tried.speedup(step, self.pairs),
        )


def _placed(culprit: Culprit, root: Path) -> Culprit:
    """The culprit with the path of its file on the head, whose repository's root is `root`; results name all files
    so."""
    if culprit.site is None:
        return culprit
    return replace(culprit, site=replace(culprit.site, file=str(root / culprit.site.file)))
