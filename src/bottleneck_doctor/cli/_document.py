"""Reads the `report.json` that a command was given: its path, or the folder that holds it, in; a `Result` out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bottleneck_doctor.errors import DoctorError

if TYPE_CHECKING:
    from bottleneck_doctor.documents.report import Result


def document_at(path: Path) -> Path:
    """The path of the document; `path` may be the folder that holds it."""
    from bottleneck_doctor.system.output import JSON_NAME

    try:
        return path / JSON_NAME if path.is_dir() else path
    except OSError:  # Reading it will say why.
        return path


def read_result(path: Path) -> Result:
    """Raises `DoctorError` `report-missing`, and the errors of `documents.report.from_json`."""
    from bottleneck_doctor.documents.report import from_json

    document = document_at(path)
    try:
        data = document.read_bytes()
    except OSError as error:
        raise DoctorError(
            "report-missing",
            f"{document} can't be read: {error.strerror}.",
            "Give the report.json that `doctor run` wrote.",
        ) from error
    return from_json(data, source=str(document))
