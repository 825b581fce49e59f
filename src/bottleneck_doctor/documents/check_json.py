"""A check's outcome as JSON: a `Check` in, bytes that other programs read out, and back.

`docs/check.schema.json` is generated from the document's classes by `python -m bottleneck_doctor.documents.check_json`.
"""

from __future__ import annotations

from pathlib import Path

from bottleneck_doctor.documents import codec
from bottleneck_doctor.documents.check import FORMAT, Check
from bottleneck_doctor.errors import DoctorError


def to_json(check: Check) -> bytes:
    """Encode as indented UTF-8 JSON that ends in a newline."""
    return codec.encode(check)


def from_json(data: bytes, *, source: str) -> Check:
    """Decode what `doctor check --json` wrote. `source` names it in messages.

    Raises `DoctorError` `check-unreadable` where it is not such a document and `check-too-new` where its format is
    newer than this release reads.
    """
    try:
        return codec.decode(data, Check, newest=FORMAT)
    except codec.OtherFormat as other:
        raise DoctorError(
            "check-too-new",
            f"{source} has format {other.found}; this release reads up to {FORMAT}.",
            "Install a newer bottleneck-doctor.",
        ) from other
    except codec.Unreadable as error:
        raise DoctorError(
            "check-unreadable",
            f"{source} is not the result of a check by bottleneck-doctor: {error}.",
            "Give the file that `doctor check --json FILE` wrote.",
        ) from error


def json_schema() -> bytes:
    """JSON Schema of the document, generated from its classes."""
    return codec.schema(Check, "bottleneck-doctor check")


if __name__ == "__main__":
    Path("docs/check.schema.json").write_bytes(json_schema())
