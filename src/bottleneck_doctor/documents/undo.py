"""What `doctor apply` keeps to take its edits back: files, what they were and became, and patches that lead back.

Written as `undo.json` beside the report. It outlives the next examination, for that is when a change is regretted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bottleneck_doctor.documents import codec
from bottleneck_doctor.documents.report import Tool
from bottleneck_doctor.errors import DoctorError

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class EditedFile:
    """`file`: where it lies. `name`: what patches call it. `before`, `after`: SHA-256 of its bytes. `patch`: makes of
    what it became what it was."""

    file: str
    name: str
    before: str
    after: str
    patch: str


@dataclass(frozen=True, kw_only=True)
class Application:
    """One call of `doctor apply`. `fixes`: the ids that were asked for; none for what the report promised."""

    created: str
    fixes: list[str]
    files: list[EditedFile]


@dataclass(frozen=True, kw_only=True)
class Undo:
    """`applications`: the latest one last."""

    tool: Tool
    applications: list[Application] = field(default_factory=list)
    format: int = FORMAT


def to_json(undo: Undo) -> bytes:
    """Encode as indented UTF-8 JSON that ends in a newline."""
    return codec.encode(undo)


def from_json(data: bytes, *, source: str) -> Undo:
    """Decode an `undo.json`. `source` names it in messages. Raises `DoctorError` `undo-unreadable`."""
    try:
        return codec.decode(data, Undo, newest=FORMAT)
    except (codec.OtherFormat, codec.Unreadable) as error:
        raise DoctorError(
            "undo-unreadable",
            f"{source} is not what `doctor apply` of this release keeps: {error}.",
            "Change the files back by hand; the patches in report-artifacts show what was changed.",
        ) from error
