"""A check's outcome as JSON: a `Check` in, bytes that other programs read out, and back.

`docs/check.schema.json` is generated from the document's classes by `python -m bottleneck_doctor.documents.check_json`.
"""

from __future__ import annotations

from pathlib import Path

from bottleneck_doctor.documents import codec
from bottleneck_doctor.documents.check import FORMAT, Check
from bottleneck_doctor.errors import DoctorError, reason_of


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


def read_folder(folder: Path) -> list[Check]:
    """All results of checks in a folder, in the order of their files' names; other files are passed over. A folder that
    is not there yet has none, as before the first check.

    Raises `DoctorError` `earlier-unreadable` where the folder can't be listed.
    """
    found = []
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DoctorError(
            "earlier-unreadable",
            f"The folder of earlier checks {folder} can't be read: {reason_of(error)}.",
            "Give --earlier a folder, in which files of `doctor check --json` lie.",
        ) from error
    for path in paths:
        try:
            found.append(from_json(path.read_bytes(), source=str(path)))
        except (OSError, DoctorError):
            continue  # A file of another program, or one that is damaged: there are others.
    return found


def json_schema() -> bytes:
    """JSON Schema of the document, generated from its classes."""
    return codec.schema(Check, "bottleneck-doctor check")


if __name__ == "__main__":
    Path("docs/check.schema.json").write_bytes(json_schema())
