"""What is asked of an examination (`ExaminationRequest`), and what it hands back (`ExaminationOutcome`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Result
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine.going_on import Confirming
from bottleneck_doctor.explain.explainer import ExplainOptions
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.durations import typed_duration

LONGEST_COMMAND = 64
"""A command of up to this many characters is shown in a sentence as it is."""


@dataclass(frozen=True, kw_only=True)
class ExaminationRequest:
    """What the user asked for. `budget` in seconds; None: doctor decides."""

    start: Start
    output: Path
    budget: float | None = None
    fresh_runs: bool = False
    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    sessions: int | None = None
    seed: int | None = None
    verbose: bool = False
    explain: ExplainOptions | None = None
    """How to explain the figures; None: only speedups are measured."""
    discretion: Discretion = field(default_factory=Discretion)
    """What no output may show."""
    confirm: bool | None = None
    """Whether the program with the change made is measured, too; None: if there is time. An examination itself does
    not do that (`confirm/`)."""
    confirming: Confirming | None = None
    """What a confirmation takes that follows if there is time for it; None: none follows, or it has time of its own."""

    def settling(
        self, only: frozenset[str], skip: frozenset[str], seconds: float, sessions: int | None
    ) -> tuple[list[str], str]:
        """The command that examines again in `seconds`, otherwise as this one; and a short form for a sentence, with
        `…` for what is left out. `only`: ids of the fixes to try (empty: the same as before). `skip`: ids of fixes to
        leave out in addition. `sessions`: None if doctor decides."""
        asked = replace(self, budget=seconds, sessions=sessions, only=self.only - skip, skip=self.skip | skip)
        if only:
            asked = replace(asked, only=only, skip=frozenset())
        command = asked.repeat(self.seed)
        text = words.command_text(command)
        if len(text) <= LONGEST_COMMAND and "`" not in text:
            return command, text
        start = Start(
            script=None if self.start.script is None else Path(self.start.script.name),
            module=self.start.module,
            words=tuple(Path(word).name for word in self.start.words[:1]),
        )
        bare = replace(
            asked,
            start=start,
            output=Path("."),
            fresh_runs=False,
            seed=None,
            explain=ExplainOptions(folder=Path(".")),
        )
        short = replace(bare, discretion=Discretion()).repeat(None)
        return command, words.command_text(short).replace("`", "'") + " …"

    def repeat(self, seed: int | None) -> list[str]:
        """The command that does the same again. Secrets are masked, so the user has to fill them in. `seed`: None for a
        random one."""
        command = ["run"]
        if seed is not None:
            command += ["--seed", str(seed)]
        if self.budget is not None:
            command += ["--budget", typed_duration(self.budget)]
        if self.output != Path("."):
            command += ["-o", str(self.output)]
        if self.explain is not None and self.explain.rate != ExplainOptions.rate:
            command += ["--rate", str(self.explain.rate)]
        for option, is_set in (
            ("--fresh-runs", self.fresh_runs),
            ("--no-explain", self.explain is None),
            ("--native", self.explain is not None and self.explain.native),
            ("--no-source", not self.discretion.source),
            ("--confirm", self.confirm is True),
            ("--no-confirm", self.confirm is False),
        ):
            command += [option] if is_set else []
        for option, names in (("--only", self.only), ("--skip", self.skip)):
            for name in sorted(names):
                command += [option, name]
        if self.sessions is not None:
            command += ["--sessions", str(self.sessions)]
        return self.discretion.words(self.start.again(*command))


@dataclass(frozen=True)
class ExaminationOutcome:
    """The result, and the exit code of the command that asked for it."""

    result: Result
    exit_code: int
    error: DoctorError | None = None
    """Why nothing could be compared, if the result only says where the time goes."""
    bug: Exception | None = None
    """A bug in doctor that ended it early, after something was measured."""
    costs: Costs | None = None
    """What windows of the loop cost, for whoever measures it further; None if no loop was found."""
    loop: Found | None = None
    """The loop, for the same."""
