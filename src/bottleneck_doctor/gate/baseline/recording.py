"""Makes a stored baseline, for `doctor baseline`: a `RecordingRequest` in, the baseline with the new measurements
out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bottleneck_doctor import __version__
from bottleneck_doctor.documents import stored_baseline
from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.documents.report import Entrypoint, Tool, Warning
from bottleneck_doctor.documents.stored_baseline import Stored, Take
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate import decide, plan
from bottleneck_doctor.gate.baseline import machine
from bottleneck_doctor.gate.baseline.machine import Machine
from bottleneck_doctor.gate.baseline.single import Drawing, Training
from bottleneck_doctor.gate.sides import revision
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.system.interrupt import terminate_as_interrupt
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words

PROCESSES = 8
"""Processes of a take if the user says nothing else. More processes at one time say little about other times."""
_LONG = 300.0
"""Seconds that a take without a budget is planned for."""


@dataclass(frozen=True, kw_only=True)
class RecordingRequest:
    """What the user asked for. `before`: the baseline that `file` holds already. `budget`: seconds; None if there is
    none."""

    training: Training
    file: str
    before: Stored | None = None
    processes: int | None = None
    budget: float | None = None

    def repeat(self) -> list[str]:
        """The command that repeats this. Secrets in it are masked, so the user has to fill them in."""
        command = ["baseline", "-o", self.file]
        command += [] if self.processes is None else ["--sessions", str(self.processes)]
        command += [] if self.budget is None else ["--budget", f"{self.budget:g}s"]
        command += [] if self.training.steady else ["--no-steady"]
        return self.training.again(*command)

    def check(self) -> list[str]:
        """The command of a later check against this baseline."""
        return self.training.again("check", "--baseline", self.file)


@dataclass(frozen=True)
class RecordingOutcome:
    """The baseline with its new measurements, and warnings about it."""

    baseline: Stored
    warnings: list[Warning]


def record(
    request: RecordingRequest,
    progress: Progress,
    describe: machine.Describe = machine.describe,
    *,
    outside: Outside | None = None,
) -> RecordingOutcome:
    """Measure processes and add them to a baseline. `describe`: how the machine is described. `outside`: as for
    `check.check`.

    Raises `DoctorError`: `baseline-of-another` or `different-machine` if the new measurements don't belong to those in
    the file, `machine-unknown`, and others if nothing could be measured at all.
    """
    with terminate_as_interrupt():
        return _record(request, progress, describe, outside or Outside())


def _record(
    request: RecordingRequest, progress: Progress, describe: machine.Describe, outside: Outside
) -> RecordingOutcome:
    training, before = request.training, request.before
    told = training.told()
    if before is not None and before.entrypoint.argv != told:
        raise DoctorError(
            "baseline-of-another",
            f"{request.file} holds measurements of {words.visible(words.command_text(before.entrypoint.argv))}, so "
            "measurements of another command can't be added.",
            "Give another file with -o, or replace this one with --new.",
        )
    cwd = Path.cwd()
    root, head = revision.here(cwd)
    progress.stage("Identifying this machine and measuring its speed")
    now = _machine(request, cwd, describe)
    seconds = request.budget or _LONG
    budget = Budget(seconds, strict=request.budget is not None, total=request.budget, now=outside.now)
    drawing = Drawing(training, head, root, cwd, budget, progress, outside)
    wanted = request.processes or (PROCESSES if request.budget is None else decide.most_looked_at())

    def more() -> bool:
        count = len(drawing.draws)
        if request.budget is None or not count:
            return count < wanted
        return count < wanted and plan.another_fits(drawing.seconds_each(), budget.left())

    begun = stored_baseline.now()
    drawing.run(more, whole=None if before is None else all(draw.whole_epochs for draw in before.draws))
    take = Take(taken=begun, commit=head.commit, dirty=head.dirty, calibration=now.calibration, draws=drawing.draws)
    made = Stored(
        tool=Tool(name="bottleneck-doctor", version=__version__),
        entrypoint=Entrypoint(argv=told, cwd=str(cwd.resolve())),
        machine=now.fingerprint if before is None else before.machine,
        steady=training.steady,
        takes=[*([] if before is None else before.takes), take],
        environment=drawing.environment(),
        command=request.repeat(),
    )
    return RecordingOutcome(training.discretion.document(made), drawing.warnings + _other_commit(before, head))


def _machine(request: RecordingRequest, cwd: Path, describe: machine.Describe) -> Machine:
    """This machine; it has to be the one of the earlier measurements."""

    def see() -> Machine:
        return describe(request.training.start.interpreter, cwd, request.training.surroundings())

    if request.before is None:
        return see()
    now, found = machine.describe_until_alike(see, request.before.machine, request.before.calibrations)
    if found:
        raise machine.other_machine(request.file, found, "Give another file with -o, or replace this one with --new.")
    return replace(now, fingerprint=request.before.machine)


def _other_commit(before: Stored | None, head: Side) -> list[Warning]:
    if before is None or before.last.commit == head.commit:
        return []
    then, now = (commit[:9] if commit else "no commit" for commit in (before.last.commit, head.commit))
    return [
        Warning(
            slug="baseline-other-commit",
            sentence=f"The earlier measurements are of {then}, the new ones of {now}. The changes in between count as "
            "variation of the machine, and make intervals wider.",
        )
    ]
