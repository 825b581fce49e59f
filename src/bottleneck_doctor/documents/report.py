"""The outcome of one examination, as one versioned, typed document.

Everything that a report, the terminal, a comparison or the gate may say comes from a `Result`; `report.json` is its
JSON form and its shape is a promise to other programs. Units: seconds, bytes, shares from 0 to 1, ratios to the
baseline (above 1 is faster). `docs/report.schema.json` is generated from these classes by `python -m
bottleneck_doctor.documents.report`. Its parts lie in `measured`, `outcomes`, `explained` and `profiles` beside this
file; readers import all of them from here.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bottleneck_doctor.documents import codec
from bottleneck_doctor.documents.explained import (
    EpochPause,
    EvaluationLoader,
    Event,
    FileUse,
    Finding,
    FrozenPart,
    GarbageCollection,
    Interruption,
    Loading,
    LongPause,
    NotJudged,
    PaddingUse,
    PhaseTable,
    PictureUse,
    Site,
    StepTimes,
    SynchronisingCall,
    Timeline,
    TransformCost,
    WholeRun,
    WorkerActivity,
)
from bottleneck_doctor.documents.measured import (
    Baseline,
    Exchanges,
    Noise,
    Phases,
    RankPart,
    Setting,
    SettingValue,
    Speedup,
    Surroundings,
    Warning,
    Window,
    WindowLoss,
    WindowMemory,
)
from bottleneck_doctor.documents.outcomes import (
    Change,
    ChangedWords,
    Combination,
    Confirmation,
    Confirmed,
    ConfirmedBy,
    FixOutcome,
    LadderStep,
    PeakMemory,
    Preparation,
    Refused,
    Risk,
    Settle,
    SourceFile,
    Sources,
    Status,
    Verdict,
    WorkerPoint,
    Workers,
)
from bottleneck_doctor.documents.profiles import (
    CallNode,
    DeviceProfile,
    DeviceUse,
    HotFunction,
    LineCost,
    LineListing,
    LineProfile,
    Operator,
    ProcessUse,
    Profiles,
    SamplingProfile,
    Span,
    Utilization,
    WindowUse,
)
from bottleneck_doctor.errors import DoctorError

__all__ = [
    "FORMAT",
    "Baseline",
    "CallNode",
    "Change",
    "ChangedWords",
    "Combination",
    "Confirmation",
    "Confirmed",
    "ConfirmedBy",
    "DeviceProfile",
    "DeviceUse",
    "Entrypoint",
    "Environment",
    "EpochPause",
    "EvaluationLoader",
    "Event",
    "Exchanges",
    "FileUse",
    "Finding",
    "FixOutcome",
    "FrozenPart",
    "GarbageCollection",
    "HotFunction",
    "Interruption",
    "LadderStep",
    "LineCost",
    "LineListing",
    "LineProfile",
    "Loading",
    "LongPause",
    "Method",
    "Noise",
    "NotJudged",
    "Operator",
    "PaddingUse",
    "PeakMemory",
    "PhaseTable",
    "Phases",
    "PictureUse",
    "Preparation",
    "ProcessUse",
    "Profiles",
    "Protection",
    "Rank",
    "RankPart",
    "Refused",
    "Result",
    "Risk",
    "SamplingProfile",
    "SessionRecord",
    "Setting",
    "SettingValue",
    "Settle",
    "Site",
    "SourceFile",
    "Sources",
    "Span",
    "Speedup",
    "Status",
    "StepTimes",
    "Surroundings",
    "SynchronisingCall",
    "Timeline",
    "Tool",
    "TransformCost",
    "Utilization",
    "Verdict",
    "Warning",
    "WholeRun",
    "Window",
    "WindowLoss",
    "WindowMemory",
    "WindowUse",
    "WorkerActivity",
    "WorkerPoint",
    "Workers",
    "from_json",
    "json_schema",
    "to_json",
]

FORMAT = 1
"""Number of the document's shape. Raised when a reader of the old shape would misread the new one."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Entrypoint:
    """What the user asked to run, as they wrote it."""

    argv: list[str]
    cwd: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine and the libraries, as the user's own process saw them."""

    python: str
    torch: str
    platform: str
    cpu: str
    usable_cpus: int
    total_cpus: int
    memory_bytes: int
    devices: list[str]
    variables: dict[str, str]
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """One start of the entrypoint: how long set-up took, why it ended, and the load of others meanwhile.

    `log` is "": no release has written it, and no page shows it.
    """

    number: int
    setup_seconds: float
    seconds: float
    ended: str
    other_load: float | None = None
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Rank:
    """One of the processes that train together, and the host it ran on."""

    rank: int
    local_rank: int
    host: str


@dataclass(frozen=True, kw_only=True)
class Protection:
    """How the user's files were kept as they were.

    `sandbox`: changes went into a layer that was thrown away. `guard`: what was changed was put back, what was new was
    removed. `reason`: why there was no sandbox. `covered`: folders of the sandbox; a guard stood over all others.
    `unprotected`: what neither holds, in words.
    """

    kind: Literal["sandbox", "guard", "none"]
    reason: str = ""
    covered: list[str] = field(default_factory=list)
    unprotected: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Method:
    """How the figures were made: enough to repeat them."""

    command: list[str]
    seed: int
    budget_seconds: float
    seconds: float
    ways: Literal["windows", "fresh-runs"]
    sessions: list[SessionRecord]
    confidence: float = 0.95
    equivalence: float = 0.02
    protection: Protection | None = None
    """None in reports of earlier releases."""
    source: bool = True
    """Whether lines of the user's code are in the report; with `--no-source` their texts and all diffs are empty."""
    sure_after_seconds: float | None = None
    """When measuring ended because more of it would have changed nothing; None where the time ended it."""
    claimed_after_seconds: float | None = None
    """When a large gain was sure first, whatever was measured after that; None where none was before the end."""


@dataclass(frozen=True, kw_only=True)
class Result:
    tool: Tool
    created: str
    entrypoint: Entrypoint
    environment: Environment
    verdict: Verdict
    baseline: Baseline | None
    noise: Noise | None
    ceilings: dict[str, Speedup]
    fixes: list[FixOutcome]
    combination: Combination | None
    workers: Workers | None
    phases: PhaseTable | None
    utilization: Utilization | None
    profiles: Profiles | None
    findings: list[Finding]
    warnings: list[Warning]
    windows: list[Window]
    method: Method
    steps: StepTimes | None = None
    epoch_pause: EpochPause | None = None
    interruption: Interruption | None = None
    """None where no evaluation in the midst of an epoch was seen twice in a process."""
    long_pause: LongPause | None = None
    """None where all pauses came to their end, and in reports of earlier releases."""
    loading: list[Loading] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    synchronising: list[SynchronisingCall] = field(default_factory=list)
    garbage: GarbageCollection | None = None
    not_judged: list[NotJudged] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    """Empty where one process trains."""
    without_ceilings: str = ""
    """Why the ceiling of faster loading did not have to be measured; "" where it was, or where it is missing."""
    sources: Sources | None = None
    """What `doctor apply` holds the files against; None where no change edits a file, and in reports of earlier
    releases."""
    confirmation: Confirmation | None = None
    """What became of the promise with the change made; None where nothing is promised, where nobody wanted it, and in
    reports of earlier releases."""
    refused: list[Refused] = field(default_factory=list)
    """What was promised before, in order; empty in reports of earlier releases."""
    whole_run: WholeRun | None = None
    """None where the program does not say how long it will train, and in reports of earlier releases."""
    format: int = FORMAT


def to_json(result: Result) -> bytes:
    """Encode as indented UTF-8 JSON that ends in a newline."""
    return codec.encode(result)


def from_json(data: bytes, *, source: str) -> Result:
    """Decode a `report.json`. `source` names it in messages.

    Raises `DoctorError` `report-unreadable` where it is not such a document and `report-too-new` where its format is
    newer than this release reads.
    """
    try:
        return codec.decode(data, Result, newest=FORMAT)
    except codec.OtherFormat as other:
        if other_kind := _other_kind(data):
            raise _unreadable(source, other_kind) from other
        raise DoctorError(
            "report-too-new",
            f"{source} has format {other.found}; this release reads up to {FORMAT}.",
            "Install a newer bottleneck-doctor.",
        ) from other
    except codec.Unreadable as error:
        raise _unreadable(source, _other_kind(data) or str(error)) from error


def _unreadable(source: str, why: str) -> DoctorError:
    return DoctorError(
        "report-unreadable",
        f"{source} is not a report.json of bottleneck-doctor: {why}.",
        "Give the report.json that `doctor run` wrote.",
    )


def _other_kind(data: bytes) -> str:
    """What another document of ours is; "" of all else."""
    with contextlib.suppress(codec.Unreadable):
        head = codec.plain(data)
        if isinstance(head, dict) and head.get("kind") == "bottleneck-doctor baseline":
            return "it is what `doctor baseline` wrote, for `doctor check --baseline`"
        if isinstance(head, dict) and {"base", "head", "metrics"} <= head.keys():
            return "it is what `doctor check` wrote, which holds two revisions already"
    return ""


def json_schema() -> bytes:
    """JSON Schema of `report.json`, generated from the classes above."""
    return codec.schema(Result, "bottleneck-doctor report")


if __name__ == "__main__":
    Path("docs/report.schema.json").write_bytes(json_schema())
