"""What the page cannot say, and why; and the files that lie beside it."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.documents.report import NotJudged, Result, Warning
from bottleneck_doctor.wording import ranking


@dataclass(frozen=True)
class Gaps:
    """`not_judged`: rules without evidence. `missing`: evidence that could not be had. `absent`: not measured."""

    not_judged: list[NotJudged]
    missing: list[Warning]
    unread: list[str]
    absent: list[str]

    @property
    def count(self) -> int:
        return len(self.not_judged) + len(self.missing) + len(self.unread) + len(self.absent)


def gaps(result: Result) -> Gaps:
    """All that this report is silent about."""
    return Gaps(
        not_judged=result.not_judged,
        missing=result.profiles.missing if result.profiles else [],
        unread=result.utilization.missing if result.utilization else [],
        absent=ranking.not_measured(result),
    )


@dataclass(frozen=True)
class Artifact:
    path: str
    what: str


def artifacts(result: Result) -> list[Artifact]:
    """Files that the examination left, by what they are; each once."""
    found: list[Artifact] = []
    profiles = result.profiles
    if profiles is not None:
        parts = (
            ("Stacks that py-spy saw", profiles.sampling.files if profiles.sampling else []),
            ("Line profile", profiles.lines.files if profiles.lines else []),
            ("Trace of operators and kernels", profiles.device.files if profiles.device else []),
        )
        found += [Artifact(path, _said(what, path)) for what, paths in parts for path in paths]
    return list({artifact.path: artifact for artifact in found}.values())


def _said(what: str, path: str) -> str:
    """With what to open it by, where its name tells."""
    return next((f"{what}: {how}" for ending, how in OPENED_BY.items() if path.endswith(ending)), what)


OPENED_BY = {
    ".speedscope.json": "open it in speedscope",
    ".lprof": "read it with python -m line_profiler",
    ".trace.json.gz": "open it in Perfetto",
    ".trace.json": "open it in Perfetto",
    ".raw": "read it with doctor hot or doctor flame",
    ".raw.txt": "read it with doctor hot or doctor flame",
}
