"""A stored baseline, as one versioned, typed document: what `doctor baseline` writes and `doctor check --baseline`
reads.

It holds figures of processes, drawn at one time or several, and the machine that they were drawn on. Units: seconds,
bytes, shares from 0 to 1. `docs/baseline.schema.json` is generated from these classes by
`python -m bottleneck_doctor.documents.stored_baseline`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from bottleneck_doctor.documents import codec
from bottleneck_doctor.documents.fingerprint import Calibration, Fingerprint
from bottleneck_doctor.documents.report import Entrypoint, Environment, Tool
from bottleneck_doctor.errors import DoctorError

FORMAT = 1
"""Number of the document's shape, and of the way in which its figures are measured: raised when figures of the old way
can't be compared with those of the new one either."""
OLDEST_FORMAT = 1

KIND = "bottleneck-doctor baseline"
MARK = re.compile(rb'"kind":\s*"bottleneck-doctor baseline"')
"""What is found in a baseline."""
FAMILY_MARK = re.compile(rb'"kind":\s*"bottleneck-doctor baseline"|"tool":\s*\{\s*"name":\s*"bottleneck-')
"""What is found in a baseline, or in another document of ours, of which reading says what it is."""

APART = timedelta(hours=1)
"""Draws that lie nearer are of one time: neighbours, heat and what lies in memory are shared."""

Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Several = Annotated[list[Seconds], Meta(min_length=1)]
Commit = Annotated[str, Meta(pattern="^[0-9a-f]{7,64}$")]


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What one process showed. `taken`: when it was started, in ISO 8601 with a zone.

    `steps`: what a step of the user's loop cost in each window, epochs included. `figures`: by the ids of metrics,
    phases as seconds a step; what could not be seen is not there. `whole_epochs`: whether windows were whole epochs.
    `of_closure`: whether a step is one call of an optimizer's closure.
    """

    taken: str
    steps: Several
    samples_per_step: Seconds
    has_loader: bool
    whole_epochs: bool
    of_closure: bool = False
    figures: dict[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Take:
    """Draws of one start of `doctor baseline`: of which commit (None where there is none), and how fast the machine
    was."""

    taken: str
    commit: Commit | None
    dirty: bool
    calibration: Calibration
    draws: Annotated[list[Draw], Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A whole baseline. `steady`: its processes ran with the allocator held steady, as those of a check do."""

    format: int = FORMAT
    kind: Literal["bottleneck-doctor baseline"] = "bottleneck-doctor baseline"
    tool: Tool
    entrypoint: Entrypoint
    machine: Fingerprint
    steady: bool
    takes: Annotated[list[Take], Meta(min_length=1)]
    environment: Environment | None = None
    command: list[str] = field(default_factory=list)
    """What does the same again."""

    @property
    def last(self) -> Take:
        """The take that was made last."""
        return max(self.takes, key=lambda take: moment(take.taken))

    @property
    def calibrations(self) -> list[Calibration]:
        return [take.calibration for take in self.takes]

    @property
    def draws(self) -> list[Draw]:
        return [draw for take in self.takes for draw in take.draws]


def times(takes: Sequence[Take]) -> list[list[Draw]]:
    """The draws by the times that they are of, oldest first."""
    ordered = sorted((draw for take in takes for draw in take.draws), key=lambda draw: moment(draw.taken))
    found: list[list[Draw]] = []
    for draw in ordered:
        if found and moment(draw.taken) - moment(found[-1][-1].taken) < APART:
            found[-1].append(draw)
        else:
            found.append([draw])
    return found


def moment(text: str) -> datetime:
    """A point in time as the document writes it. Raises `ValueError`."""
    read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return read if read.tzinfo is not None else read.replace(tzinfo=timezone.utc)


def now() -> str:
    """This moment, as the document writes it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def to_json(baseline: Stored) -> bytes:
    """Encode as indented UTF-8 JSON that ends in a newline."""
    return codec.encode(baseline)


def from_json(data: bytes, *, source: str) -> Stored:
    """Decode what `doctor baseline` wrote. `source` names it in messages.

    Raises `DoctorError` `baseline-is-report` for what `doctor run` wrote, `baseline-too-new` and `baseline-too-old` for
    other formats, and `baseline-unreadable` for anything else.
    """
    try:
        head = codec.plain(data)
        if isinstance(head, dict) and head.get("kind") != KIND:
            if {"verdict", "windows", "fixes"} <= head.keys():
                raise _is_report(source)
            raise codec.Unreadable(f"its kind is not {KIND!r}")
        read = codec.decode(data, Stored, newest=FORMAT, oldest=OLDEST_FORMAT)
        for text in (*(take.taken for take in read.takes), *(draw.taken for draw in read.draws)):
            moment(text)
        return read
    except codec.OtherFormat as other:
        if other.found > FORMAT:
            raise DoctorError(
                "baseline-too-new",
                f"{source} has format {other.found}; this release reads up to {FORMAT}.",
                "Install a newer bottleneck-doctor.",
            ) from other
        raise DoctorError(
            "baseline-too-old",
            f"{source} has format {other.found}, from a release that measured in another way.",
            "Make the baseline again with `doctor baseline --new`.",
        ) from other
    except (codec.Unreadable, ValueError, OverflowError) as error:
        raise DoctorError(
            "baseline-unreadable",
            f"{source} is not a baseline of bottleneck-doctor: {error}.",
            "Give the file that `doctor baseline` wrote.",
        ) from error


def read(path: Path) -> Stored:
    """The baseline in a file. Raises `DoctorError` as `from_json` does, and `baseline-missing`."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DoctorError(
            "baseline-missing",
            f"The baseline {path} can't be read: {reason}.",
            "Make a baseline with `doctor baseline`, and give its file.",
        ) from error
    return from_json(data, source=str(path))


def way(baseline: Stored, steady: bool, file: str) -> bool:
    """Whether the allocator is held steady, which has to be as it was for the baseline.

    Raises `DoctorError` `baseline-other-way`.
    """
    if steady != baseline.steady:
        given, needed = ("--no-steady", "--steady") if baseline.steady else ("--steady", "--no-steady")
        raise DoctorError(
            "baseline-other-way",
            f"{file} was measured with {needed}, but this command would measure with {given}.",
            f"Give {needed}, or set `steady` in the configuration. Or make the baseline again with `doctor baseline "
            "--new`.",
        )
    return steady


def _is_report(source: str) -> DoctorError:
    return DoctorError(
        "baseline-is-report",
        f"{source} is a report of `doctor run`, whose processes ran with your own allocator and tried other settings, "
        "so a check can't be compared with it.",
        "Make a baseline with `doctor baseline`, or compare reports with `doctor compare`.",
    )


def json_schema() -> bytes:
    """JSON Schema of the document, generated from its classes."""
    return codec.schema(Stored, "bottleneck-doctor baseline")


if __name__ == "__main__":
    Path("docs/baseline.schema.json").write_bytes(json_schema())
