"""What is asked of an examination, and what it hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Result
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.explain.explainer import ExplainOptions
from bottleneck_doctor.session.start import Start


@dataclass(frozen=True, kw_only=True)
class ExaminationRequest:
    """What the user asked for. `budget` in seconds; None leaves it to us."""

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
    """What is wanted beside speedups; None: nothing that explains them."""
    discretion: Discretion = field(default_factory=Discretion)
    """What no output may tell."""

    def repeat(self, seed: int) -> list[str]:
        """The command that does the same again, with what is secret masked: it has to be filled in."""
        command = ["run", "--seed", str(seed)]
        if self.budget is not None:
            command += ["--budget", f"{self.budget:g}s"]
        if self.output != Path("."):
            command += ["-o", str(self.output)]
        if self.explain is not None and self.explain.rate != ExplainOptions.rate:
            command += ["--rate", str(self.explain.rate)]
        for option, is_set in (
            ("--fresh-runs", self.fresh_runs),
            ("--no-explain", self.explain is None),
            ("--native", self.explain is not None and self.explain.native),
            ("--no-source", not self.discretion.source),
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
    """Why nothing could be compared, where the result says no more than where the time goes."""
    bug: Exception | None = None
    """A mistake of our own that ended it early, after something was measured."""
