"""A check against a stored baseline: a `StoredCheckRequest` in, a `Check` out. It measures processes of the head alone,
until the answer is clear. Here, clocks and processes meet the pure modules, as in `check` for two revisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import fmean

from bottleneck_doctor import __version__
from bottleneck_doctor.documents import stored_baseline as stored_
from bottleneck_doctor.documents.check import STEP_TIME, Check, Culprit, Metric, ProcessRecord, Side, StoredBase
from bottleneck_doctor.documents.fingerprint import Difference
from bottleneck_doctor.documents.report import Entrypoint, Tool, Warning
from bottleneck_doctor.documents.stored_baseline import Stored
from bottleneck_doctor.examine import no_result
from bottleneck_doctor.gate import decide, plan, verdict
from bottleneck_doctor.gate.baseline import against, machine, unpaired
from bottleneck_doctor.gate.baseline.single import Drawing, Training
from bottleneck_doctor.gate.check import CheckOutcome
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.gate.request import DEFAULT_BUDGET
from bottleneck_doctor.gate.sides import revision
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import change_text, is_finding


@dataclass(frozen=True, kw_only=True)
class StoredCheckRequest:
    """What the user asked for. `file`: the baseline's file, as the user named it. `budget`: seconds; None means as long
    as the number of processes takes, or else the default. `processes`: the exact number of processes of the head."""

    training: Training
    baseline: Stored
    file: str
    budget: float | None = None
    processes: int | None = None
    limits: Mapping[str, MetricLimit] = field(default_factory=lambda: DEFAULTS)
    allow_different: bool = False

    def repeat(self) -> list[str]:
        """The command that repeats this check. Secrets in it are masked, so the user has to fill them in."""
        command = ["check", "--baseline", self.file]
        step = self.limits[STEP_TIME].threshold
        if step != DEFAULTS[STEP_TIME].threshold:
            command += ["--threshold", f"{100 * step:g}%"]
        command += [] if self.budget is None else ["--budget", f"{self.budget:g}s"]
        command += [] if self.processes is None else ["--pairs", str(self.processes)]
        for option, is_set in (
            ("--allow-different-machine", self.allow_different),
            ("--no-steady", not self.training.steady),
        ):
            command += [option] if is_set else []
        return self.training.again(*command)


def check(
    request: StoredCheckRequest,
    progress: Progress,
    describe: machine.Describe = machine.describe,
    *,
    outside: Outside | None = None,
) -> CheckOutcome:
    """Compare the head with the baseline. `describe`: how the machine is described. `outside`: as for `check.check`.

    Raises `DoctorError` `different-machine` and `machine-unknown`, and others if nothing could be measured at all.
    """
    with terminate_as_interrupt():
        return _Checking(request, progress, describe, outside or Outside()).run()


class _Checking:
    def __init__(
        self, request: StoredCheckRequest, progress: Progress, describe: machine.Describe, outside: Outside
    ) -> None:
        self.request = request
        self.progress = progress
        self.outside = outside
        self.describe = describe
        self.times = stored_.times(request.baseline.takes)
        self.endless = request.processes is not None and request.budget is None
        seconds = request.budget or DEFAULT_BUDGET
        total = None if self.endless else seconds
        self.budget = Budget(seconds, strict=not self.endless, total=total, now=outside.now)
        self.wanted = request.processes or against.wanted([len(time) for time in self.times])
        self.ended = False
        """Whether no more processes were wanted."""
        self.judged: list[Metric] = []
        self.how: Judging
        """The last interim look; the result rests on it."""
        self.drawing: Drawing

    def run(self) -> CheckOutcome:
        cwd = Path.cwd()
        root, head = revision.here(cwd)
        self.progress.stage("Identifying this machine and measuring its speed")
        different = self._different(cwd)
        self.drawing = Drawing(self.request.training, head, root, cwd, self.budget, self.progress, self.outside)
        draws = self.request.baseline.draws
        self.drawing.run(self._more, whole=all(draw.whole_epochs for draw in draws))
        if not self.ended:
            # Processes were lost, or the time was over. Neither depends on the figures.
            self._look(last=True)
        return CheckOutcome(self._document(root, cwd, head, different), root)

    def _different(self, cwd: Path) -> list[Difference]:
        request, baseline = self.request, self.request.baseline
        _, found = machine.describe_until_alike(
            lambda: self.describe(request.training.start.interpreter, cwd, request.training.surroundings()),
            baseline.machine,
            baseline.calibrations,
        )
        if found and not request.allow_different:
            raise machine.other_machine(request.file, found)
        return found

    # -- processes -----------------------------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Look at the figures so far, and say whether another process is wanted and fits into the time."""
        count = len(self.drawing.draws)
        if not count:
            return True
        if self.drawing.draws[-1].of_closure != self.times[-1][-1].of_closure:
            raise no_result.steps_unlike("the head" if self.times[-1][-1].of_closure else "the baseline")
        left = math.inf if self.endless else self.budget.left()
        more = count < self.wanted and plan.another_fits(self.drawing.seconds_each(), left)
        self._look(last=not more)
        self._say()
        self.ended = not more or (self.request.processes is None and not verdict.is_open(self.judged, self.how))
        return not self.ended

    def _look(self, *, last: bool) -> None:
        fixed = self.request.processes is not None
        count = len(self.drawing.draws)
        look = against.interim_look_after(count, len(self.times), last=last, fixed=fixed)
        most = count if last else self.wanted
        self.how = Judging(self.request.limits, look, most, fixed or against.looked_at_once(len(self.times)))
        self.judged = unpaired.judged(self.times, self.drawing.draws, self.how)

    def _say(self) -> None:
        step = next((metric for metric in self.judged if metric.id == STEP_TIME), None)
        if step is not None and step.change is not None:
            count = unpaired.processes_text(len(self.drawing.draws))
            self.progress.note(f"{count}: step time {change_text(step)}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _document(self, root: Path, cwd: Path, head: Side, different: list[Difference]) -> Check:
        request, training, baseline = self.request, self.request.training, self.request.baseline
        last = baseline.last
        base = Side(
            name=f"the baseline {request.file} of {words.date_text(last.taken).partition(',')[0]}",
            commit=last.commit,
            dirty=last.dirty,
            result=request.file,
        )
        draws = self.drawing.draws
        culprits = self._culprits()
        judged = [_marked(each) for each in self.judged] if different else self.judged
        sentence = verdict.sentence(
            judged, base.name, 0, culprits, counted=f"{unpaired.processes_text(len(draws))} of the head"
        )
        warnings = self._warnings(different, explained=bool(culprits))
        made = Check(
            tool=Tool(name="bottleneck-doctor", version=__version__),
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            entrypoint=Entrypoint(argv=training.told(), cwd=str(cwd.resolve())),
            base=base,
            head=head,
            status=verdict.status(self.judged),
            sentence=f"{sentence} The baseline was made on another machine." if different else sentence,
            metrics=judged,
            pairs=[],
            error_rate=decide.ERROR_RATE,
            seconds=self.budget.elapsed(),
            budget=0.0 if self.endless else self.budget.seconds,
            steady=training.steady,
            commits=[] if last.commit is None else revision.since(root, last.commit),
            culprits=culprits,
            warnings=warnings,
            environment=self.drawing.environment(),
            command=request.repeat(),
            stored=StoredBase(
                file=request.file,
                taken=[time[0].taken for time in self.times],
                processes=len(baseline.draws),
                different=different,
            ),
            processes=[
                ProcessRecord(number=number, step_seconds=fmean(draw.steps), windows=len(draw.steps))
                for number, draw in enumerate(draws, 1)
            ],
        )
        return training.discretion.document(made)

    def _culprits(self) -> list[Culprit]:
        grew = verdict.growth(self.judged)
        return [] if grew is None else unpaired.grown_phases(self.times, self.drawing.draws, grew)

    def _warnings(self, different: list[Difference], *, explained: bool) -> list[Warning]:
        request = self.request
        found = []
        if different:
            told = "; ".join(f"{each.key}: {each.base} there, {each.head} here" for each in different)
            found.append(
                Warning(
                    slug="another-machine",
                    sentence="The baseline was made on another machine, so a difference may come from the machine: "
                    f"{told}.",
                )
            )
        if request.baseline.entrypoint.argv != request.training.told():
            command = words.command_text(request.baseline.entrypoint.argv)
            told = f"The baseline is of another command: `{command}`."
            found.append(Warning(slug="baseline-other-command", sentence=told))
        found += self.drawing.warnings
        in_time = self.endless or self.drawing.broke_off
        minutes = None if in_time else plan.enough_minutes(self.drawing.seconds_each(), self.budget.seconds)
        found += unpaired.weak_evidence(self.times, self.drawing.draws, self.how, self.judged, minutes)
        if verdict.growth(self.judged) is not None:
            phases = "phases were compared with the stored ones" if explained else "no stored phase explains it"
            found.append(
                Warning(
                    slug="culprits-missing",
                    sentence="A check against a stored baseline can't find the functions and lines that grew, because "
                    f"it has no process of the baseline to sample; {phases}. A check with `--base-ref` can find them.",
                )
            )
        return found


def _marked(metric: Metric) -> Metric:
    """The finding with a sentence about the other machine, because some outputs show nothing but findings."""
    if not is_finding(metric):
        return metric
    return replace(metric, sentence=f"{metric.sentence} The baseline was made on another machine.")
